// Curves over steps, as a picture.
#pragma once

#include <string>
#include <vector>

namespace interp {

struct Curve {
  std::string name;
  std::vector<double> steps;
  std::vector<double> values;  // those that are not finite are left out
};

// An SVG with all curves over one axis of steps, each in the range of all.
std::string PlotSvg(const std::vector<Curve>& curves);

}  // namespace interp
