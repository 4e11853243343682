#include "core/comm/mpi_transport.h"

#include <dlfcn.h>

#include <filesystem>
#include <utility>

#include "core/comm/mpi/mpi_module.h"
#include "core/machine/beside_library.h"

namespace interp {
namespace {

constexpr const char* kModuleName = "libinterp_mpi.so";
// The MPI that the module was built with, whose constants and types it knows.
#ifdef INTERP_MPI_LIBRARY
constexpr const char* kMpiName = INTERP_MPI_LIBRARY;
#else
constexpr const char* kMpiName = "libmpi.so";
#endif
constexpr size_t kMaxMessageBytes = size_t{1} << 30;  // MPI counts in ints

absl::Status ErrorOf(const InterpMpiModule& mpi, int error, absl::string_view what) {
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", mpi.describe(error)));
}

class Mpi : public Transport {
 public:
  static absl::StatusOr<std::unique_ptr<Transport>> Make(const InterpMpiModule& module) {
    std::unique_ptr<Mpi> mpi(new Mpi(module));
    int provided = 0;
    INTERP_RETURN_IF_ERROR(ErrorOf(
        module, module.init(&mpi->rank_, &mpi->size_, &mpi->max_tag_, &provided), "MPI_Init"));
    // One thread makes all calls, the one that is here: the least level (MPI_THREAD_SINGLE, 0) is
    // not enough only because other threads exist.
    if (provided < 1) {
      return Unimplemented(module.library(), " allows no threads (MPI_THREAD_SINGLE)");
    }
    return mpi;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int max_tag() const override { return max_tag_; }
  size_t max_bytes() const override { return kMaxMessageBytes; }

  absl::StatusOr<Id> Start(const Message& message) override {
    void* request = nullptr;
    INTERP_RETURN_IF_ERROR(
        ErrorOf(mpi_,
                mpi_.start(message.send ? 1 : 0, message.peer, message.tag, message.data,
                           static_cast<int>(message.bytes), &request),
                message.send ? "MPI_Isend" : "MPI_Irecv"));
    return reinterpret_cast<Id>(request);
  }

  absl::StatusOr<bool> Finished(Id id) override {
    int done = 0;
    INTERP_RETURN_IF_ERROR(
        ErrorOf(mpi_, mpi_.test(reinterpret_cast<void*>(id), &done), "MPI_Test"));
    return done != 0;
  }

  absl::Status Leave() override { return ErrorOf(mpi_, mpi_.finalize(), "MPI_Finalize"); }
  void Abort(int exit_code) override { mpi_.abort(exit_code); }

 private:
  explicit Mpi(const InterpMpiModule& module) : mpi_(module) {}

  const InterpMpiModule& mpi_;
  int rank_ = 0;
  int size_ = 1;
  int max_tag_ = 0;
};

}  // namespace

absl::StatusOr<MakeTransport> MpiTransport(const std::string& path) {
  const std::string file = path.empty() ? BesideLibrary(kModuleName) : path;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return NotFound("there is no '", file,
                    "': this interp was built without MPI; build it where an MPI is installed "
                    "(Debian: libopenmpi-dev), or install the package with it");
  }
  // Global, since the module and MPI's own plug-ins look for its symbols; never unloaded, since
  // they stay.
  if (dlopen(kMpiName, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) == nullptr) {
    return NotFound("cannot load '", kMpiName,
                    "', the MPI that this interp was built with: ", dlerror(),
                    "; install it (Debian: openmpi-bin)");
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return NotFound("cannot load '", file, "': ", dlerror());
  const auto get =
      reinterpret_cast<decltype(&GetInterpMpiModule)>(dlsym(library, "GetInterpMpiModule"));
  if (get == nullptr || get()->version != INTERP_MPI_MODULE_VERSION) {
    return NotFound("'", file, "' is of another version of interp");
  }
  const InterpMpiModule* const module = get();
  return MakeTransport([module] { return Mpi::Make(*module); });
}

}  // namespace interp
