/* interp in C: a model is loaded once and run by any number of threads.
 *
 *   interp_predictor* predictor = NULL;
 *   if (interp_predictor_load("model_folder", NULL, NULL, &predictor) != INTERP_OK)
 *     puts(interp_last_error());
 *
 * C99 and C++; nothing but this header and libinterp. Every function that can fail returns a status
 * code, keeps its message for interp_last_error(), and then has written to none of its results but
 * handles, which are NULL. No exception leaves a function. Null pointers and sizes that do not fit
 * are errors; handles that were freed, and pointers to something else, are not found out.
 *
 * Structs of options and tensors start with struct_size, which the caller sets to sizeof the
 * struct; all else may be zero, which stands for the default. So a program that was compiled with
 * an older header goes on working with a newer library, where structs have become longer.
 */
#ifndef INTERP_INTERP_H_
#define INTERP_INTERP_H_

#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The codes of absl::Status; docs/errors.md says when which. */
typedef int32_t interp_status;
enum {
  INTERP_OK = 0,
  INTERP_CANCELLED = 1,
  INTERP_INVALID_ARGUMENT = 3,
  INTERP_DEADLINE_EXCEEDED = 4,
  INTERP_NOT_FOUND = 5,
  INTERP_ALREADY_EXISTS = 6,
  INTERP_PERMISSION_DENIED = 7,
  INTERP_RESOURCE_EXHAUSTED = 8,
  INTERP_FAILED_PRECONDITION = 9,
  INTERP_UNIMPLEMENTED = 12,
  INTERP_INTERNAL = 13,
  INTERP_DATA_LOSS = 15
};

/* Element types, with the numbers of Paddle's VarType. 16-bit floats are stored as uint16_t. */
typedef int32_t interp_dtype;
enum {
  INTERP_UNDEFINED = -1,
  INTERP_BOOL = 0,
  INTERP_INT16 = 1,
  INTERP_INT32 = 2,
  INTERP_INT64 = 3,
  INTERP_FLOAT16 = 4,
  INTERP_FLOAT32 = 5,
  INTERP_FLOAT64 = 6,
  INTERP_UINT8 = 20,
  INTERP_INT8 = 21,
  INTERP_BFLOAT16 = 22,
  INTERP_COMPLEX64 = 23,
  INTERP_COMPLEX128 = 24,
  INTERP_FLOAT8_E4M3 = 32,
  INTERP_FLOAT8_E5M2 = 33
};

typedef struct interp_predictor interp_predictor;
typedef struct interp_result interp_result;
typedef struct interp_cancel_token interp_cancel_token;

typedef struct interp_options {
  size_t struct_size;
  int32_t num_streams;       /* calls that compute side by side; 0: one */
  int32_t num_threads;       /* inside an op; 0: as many as there are CPUs for the process */
  int32_t num_workers;       /* threads that run ops side by side; 0: one */
  int32_t check_nan_inf;     /* not 0: the first op that gives NaN or infinity fails */
  const char* scheduler;     /* "trace", "serial", "async", "engine"; NULL: "auto" */
  const char* algorithms;    /* "direct": convolutions as plain sums; NULL: "fast" */
  uint64_t max_memory_bytes; /* of a run, for each stream; 0: no limit */
  uint64_t random_seed;
  /* Variables to feed and to fetch, in order; none: what the program says itself. */
  const char* const* feeds;
  size_t num_feeds;
  const char* const* fetches;
  size_t num_fetches;
  /* Where the program's ops that save and load may do so; NULL: nowhere, such ops fail. */
  const char* file_folder;
  /* Where it runs: "cuda:0" is the first GPU; NULL: "cpu". Of a plan, what it was compiled for. The
   * first call for a GPU loads the library for them: nothing else of interp may run beside it. */
  const char* place;
  int32_t tf32;        /* not 0: GPUs may multiply float32 as TF32, with 10 bits of fraction */
  int32_t cuda_graphs; /* not 0: work of GPUs in CUDA graphs, from the third run with a shape on */
} interp_options;

typedef struct interp_run_options {
  size_t struct_size;
  int64_t timeout_ns;                /* waiting for a stream counts; 0: none */
  const interp_cancel_token* cancel; /* may be NULL */
} interp_run_options;

/* A variable that is fed or fetched. Pointers are valid as long as the predictor. */
typedef struct interp_var_info {
  size_t struct_size;
  const char* name;
  const int64_t* dims; /* -1: any */
  int32_t rank;
  interp_dtype dtype;
} interp_var_info;

/* Values in row-major order. Of an array of tensors all have the same struct_size. */
typedef struct interp_tensor {
  size_t struct_size;
  const void* data; /* aligned as its elements; NULL where there are none */
  size_t size_bytes;
  const int64_t* dims;
  int32_t rank;
  interp_dtype dtype;
  /* Level of detail, as offsets: level i has lod_sizes[i] of them at lod[i], from 0 on. */
  const int64_t* const* lod;
  const size_t* lod_sizes;
  size_t num_lod_levels;
} interp_tensor;

/* Where an output goes. */
typedef struct interp_memory {
  void* data;
  size_t size_bytes;
} interp_memory;

/* Of the library; INTERP_VERSION_STRING is that of the header. */
const char* interp_version(void);
/* What the last call in this thread that failed had to say, "" before the first one. Valid until
 * the next call in this thread. */
const char* interp_last_error(void);
/* "invalid argument", "float32"; "unknown" for a number that is none. */
const char* interp_status_name(interp_status status);
const char* interp_dtype_name(interp_dtype dtype);
/* Bytes of an element; 0 for a number that is no dtype. */
size_t interp_dtype_size(interp_dtype dtype);

/* `model`: a program, a plan of `interp compile`, a folder that holds one, or a path without its
 * ending. `params`: a file or folder of parameters; NULL: those that lie beside it. */
interp_status interp_predictor_load(const char* model, const char* params,
                                    const interp_options* options, interp_predictor** predictor);
/* No call may be in progress. NULL is fine, as for all functions that free. */
void interp_predictor_free(interp_predictor* predictor);

/* 0 for NULL. */
size_t interp_predictor_num_inputs(const interp_predictor* predictor);
size_t interp_predictor_num_outputs(const interp_predictor* predictor);
/* `info->struct_size` says what is asked for. */
interp_status interp_predictor_input(const interp_predictor* predictor, size_t index,
                                     interp_var_info* info);
interp_status interp_predictor_output(const interp_predictor* predictor, size_t index,
                                      interp_var_info* info);

/* Runs the model, from any thread. Feeds come in the order of the inputs; their memory is the
 * caller's, and only read, until the call returns. `options` may be NULL. The result goes to
 * interp_result_free and outlives the predictor. */
interp_status interp_predictor_run(interp_predictor* predictor, const interp_tensor* feeds,
                                   size_t num_feeds, const interp_run_options* options,
                                   interp_result** result);
/* The same, and output i is copied to outputs[i], which has to be large enough: else nothing is
 * written, and the error tells the size. `result`, which may be NULL, then tells dtypes and shapes;
 * its data are the caller's memory. */
interp_status interp_predictor_run_into(interp_predictor* predictor, const interp_tensor* feeds,
                                        size_t num_feeds, const interp_memory* outputs,
                                        size_t num_outputs, const interp_run_options* options,
                                        interp_result** result);

size_t interp_result_size(const interp_result* result);
/* Pointers in `tensor` are valid as long as the result. */
interp_status interp_result_get(const interp_result* result, size_t index, interp_tensor* tensor);
void interp_result_free(interp_result* result);

/* Ends calls: those in progress that were given the token, and all later ones, return
 * INTERP_CANCELLED. From any thread; a token may be freed while calls use it, but not while a call
 * begins. */
interp_status interp_cancel_token_create(interp_cancel_token** token);
interp_status interp_cancel_token_cancel(interp_cancel_token* token);
void interp_cancel_token_free(interp_cancel_token* token);

#ifdef __cplusplus
}
#endif

#endif /* INTERP_INTERP_H_ */
