/* What libinterp_mpi.so gives libinterp.so, which does not link MPI itself: plain C, so that the
 * two need not be built by one compiler. Function GetInterpMpiModule() of the library returns it.
 * All functions but `abort` are called by one thread, the one that called `init`. Those that return
 * an int give 0, or what `describe` says in words. */
#ifndef INTERP_CORE_COMM_MPI_MPI_MODULE_H_
#define INTERP_CORE_COMM_MPI_MPI_MODULE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INTERP_MPI_MODULE_VERSION 1

struct InterpMpiModule {
  int version; /* INTERP_MPI_MODULE_VERSION */
  /* Joins the others. `provided` becomes the level of threads that the library allows. */
  int (*init)(int* rank, int* size, int* max_tag, int* provided);
  /* Starts a message of `bytes` bytes; `*request` is freed by the `test` that finds it done. */
  int (*start)(int send, int peer, int tag, void* data, int bytes, void** request);
  int (*test)(void* request, int* done);
  int (*finalize)(void);
  void (*abort)(int exit_code);
  /* Name and version of the library, and what an error means; valid until the next call. */
  const char* (*library)(void);
  const char* (*describe)(int error);
};

const struct InterpMpiModule* GetInterpMpiModule(void);

#ifdef __cplusplus
}
#endif

#endif /* INTERP_CORE_COMM_MPI_MPI_MODULE_H_ */
