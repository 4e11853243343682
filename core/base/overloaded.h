// Overloaded{f, g, ...}: what calls whichever of them takes the argument, for std::visit.
#pragma once

namespace interp {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace interp
