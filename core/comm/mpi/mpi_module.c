/* libinterp_mpi.so: MPI as transport.h of core/comm wants it. */
#include "core/comm/mpi/mpi_module.h"

#include <mpi.h>
#include <stdlib.h>

/* Of our own, so that no message is taken for one of the program's other libraries. */
static MPI_Comm everybody = MPI_COMM_NULL;

static int Init(int* rank, int* size, int* max_tag, int* provided) {
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, provided);
  if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &everybody);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(everybody, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(everybody, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(everybody, size);
  if (error != MPI_SUCCESS) return error;
  int* largest = NULL;
  int found = 0;
  error = MPI_Comm_get_attr(everybody, MPI_TAG_UB, &largest, &found);
  *max_tag = found ? *largest : 32767; /* what MPI promises at least */
  return error;
}

struct Request {
  MPI_Request of_mpi;
  int expected; /* bytes to come; -1: a message that goes out */
};

static int Start(int send, int peer, int tag, void* data, int bytes, void** request) {
  struct Request* const made = malloc(sizeof(struct Request));
  if (made == NULL) return MPI_ERR_NO_MEM;
  made->expected = send ? -1 : bytes;
  const int error = send ? MPI_Isend(data, bytes, MPI_BYTE, peer, tag, everybody, &made->of_mpi)
                         : MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, everybody, &made->of_mpi);
  if (error == MPI_SUCCESS) {
    *request = made;
  } else {
    free(made);
  }
  return error;
}

static int Test(void* request, int* done) {
  struct Request* const started = request;
  MPI_Status status;
  int error = MPI_Test(&started->of_mpi, done, &status);
  int came = started->expected;
  if (error == MPI_SUCCESS && *done && came >= 0) {
    error = MPI_Get_count(&status, MPI_BYTE, &came);
  }
  /* To MPI a message may be shorter than its place; here both sides have said how long it is. */
  if (error == MPI_SUCCESS && came != started->expected) error = MPI_ERR_TRUNCATE;
  if (error != MPI_SUCCESS || *done) free(started);
  return error;
}

static int Finalize(void) {
  const int error = MPI_Comm_free(&everybody);
  return error != MPI_SUCCESS ? error : MPI_Finalize();
}

static void Abort(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

static const char* Library(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
  for (int i = 0; i < length; ++i) {
    if (text[i] == ',' || text[i] == '\n') text[i] = 0;
  }
  return text;
}

static const char* Describe(int error) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return "unknown error";
  return text;
}

const struct InterpMpiModule* GetInterpMpiModule(void) {
  static const struct InterpMpiModule module = {
      .version = INTERP_MPI_MODULE_VERSION,
      .init = Init,
      .start = Start,
      .test = Test,
      .finalize = Finalize,
      .abort = Abort,
      .library = Library,
      .describe = Describe,
  };
  return &module;
}
