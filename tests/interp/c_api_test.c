/* The C API, from a C program:  c_api_tests DIGITS_FOLDER TEMPORARY_FOLDER
 *
 * Long because it is one program, which checks one step after the other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/interp.h"

static int failures = 0;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      printf("  the last error is: %s\n", interp_last_error());      \
      ++failures;                                                    \
    }                                                                \
  } while (0)

/* The call fails with the code, and its message has the text. */
#define CHECK_FAILS(call, code, text)                                                          \
  do {                                                                                         \
    const interp_status got = (call);                                                          \
    if (got != (code) || strstr(interp_last_error(), (text)) == NULL) {                        \
      printf("%s:%d: %s gives '%s': %s\n", __FILE__, __LINE__, #call, interp_status_name(got), \
             interp_last_error());                                                             \
      printf("  expected '%s' with: %s\n", interp_status_name(code), (text));                  \
      ++failures;                                                                              \
    }                                                                                          \
  } while (0)

static const char* temporary_folder;
static float blank[28 * 28]; /* an empty picture */
static const int64_t kImageDims[] = {1, 1, 28, 28};

static interp_tensor image(void) {
  const interp_tensor tensor = {.struct_size = sizeof tensor,
                                .data = blank,
                                .size_bytes = sizeof blank,
                                .dims = kImageDims,
                                .rank = 4,
                                .dtype = INTERP_FLOAT32};
  return tensor;
}

static interp_predictor* load(const char* path, int num_streams) {
  const interp_options options = {.struct_size = sizeof options, .num_streams = num_streams};
  interp_predictor* predictor = NULL;
  if (interp_predictor_load(path, NULL, &options, &predictor) == INTERP_OK) return predictor;
  printf("%s\n", interp_last_error());
  exit(1);
}

static interp_predictor* load_text(const char* name, const char* text, const char* feed,
                                   const char* fetch) {
  char path[4096];
  FILE* file;
  const interp_options options = {.struct_size = sizeof options,
                                  .feeds = &feed,
                                  .num_feeds = feed != NULL,
                                  .fetches = &fetch,
                                  .num_fetches = 1};
  interp_predictor* predictor = NULL;
  snprintf(path, sizeof path, "%s/%s", temporary_folder, name);
  file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) exit(1);
  if (interp_predictor_load(path, NULL, &options, &predictor) == INTERP_OK) return predictor;
  printf("%s\n", interp_last_error());
  exit(1);
}

static void versions_and_names(void) {
  CHECK(strcmp(interp_version(), INTERP_VERSION_STRING) == 0);
  CHECK(strcmp(interp_last_error(), "") == 0);
  CHECK(strcmp(interp_status_name(INTERP_DATA_LOSS), "data loss") == 0);
  CHECK(strcmp(interp_status_name(INTERP_ALREADY_EXISTS), "already exists") == 0);
  CHECK(strcmp(interp_status_name(INTERP_PERMISSION_DENIED), "permission denied") == 0);
  CHECK(strcmp(interp_status_name(77), "unknown") == 0);
  CHECK(strcmp(interp_dtype_name(INTERP_BFLOAT16), "bfloat16") == 0);
  CHECK(strcmp(interp_dtype_name(99), "unknown") == 0);
  CHECK(interp_dtype_size(INTERP_INT64) == 8);
  CHECK(interp_dtype_size(99) == 0);
}

static void loading_says_what_is_wrong(const char* digits) {
  const char* none = NULL;
  interp_options options = {.struct_size = sizeof options};
  interp_predictor* predictor = (interp_predictor*)blank;
  CHECK_FAILS(interp_predictor_load("/no/such/model", NULL, NULL, &predictor), INTERP_NOT_FOUND,
              "/no/such/model");
  CHECK(predictor == NULL);
  CHECK_FAILS(interp_predictor_load(NULL, NULL, NULL, &predictor), INTERP_INVALID_ARGUMENT,
              "model is NULL");
  CHECK_FAILS(interp_predictor_load(digits, NULL, NULL, NULL), INTERP_INVALID_ARGUMENT,
              "predictor is NULL");
  options.struct_size = 8;
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "options.struct_size is 8, expected ");
  options.struct_size = sizeof options;
  options.scheduler = "clever";
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "clever");
  options.scheduler = NULL;
  options.num_threads = -1;
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "options.num_threads is -1, expected 0 to 1024");
  options.num_threads = 0;
  options.file_folder = "/no/such/folder";
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_NOT_FOUND,
              "/no/such/folder");
  options.file_folder = NULL;
  options.place = "gpu";
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "options.place: ");
  /* An older header ends before it. */
  options.struct_size = offsetof(interp_options, place);
  CHECK(interp_predictor_load(digits, NULL, &options, &predictor) == INTERP_OK);
  interp_predictor_free(predictor);
  options.struct_size = sizeof options;
  options.place = NULL;
  options.cuda_graphs = 1;
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "nothing of the program runs on a GPU");
  options.cuda_graphs = 0;
  options.num_fetches = 1;
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "options.fetches is NULL");
  options.fetches = &none;
  CHECK_FAILS(interp_predictor_load(digits, NULL, &options, &predictor), INTERP_INVALID_ARGUMENT,
              "options.fetches[0] is NULL");
}

static void inputs_and_outputs_are_told(interp_predictor* predictor) {
  interp_var_info info = {.struct_size = sizeof info};
  CHECK(interp_predictor_num_inputs(predictor) == 1);
  CHECK(interp_predictor_num_outputs(predictor) == 1);
  CHECK(interp_predictor_input(predictor, 0, &info) == INTERP_OK);
  CHECK(info.dtype == INTERP_FLOAT32 && info.rank == 4);
  CHECK(info.dims[0] == -1 && info.dims[3] == 28);
  CHECK(interp_predictor_output(predictor, 0, &info) == INTERP_OK);
  CHECK(strcmp(info.name, "save_infer_model/scale_0.tmp_0") == 0);
  CHECK_FAILS(interp_predictor_output(predictor, 1, &info), INTERP_INVALID_ARGUMENT,
              "index is 1, expected less than 1");
  CHECK_FAILS(interp_predictor_input(predictor, 0, NULL), INTERP_INVALID_ARGUMENT, "info is NULL");
  CHECK_FAILS(interp_predictor_input(NULL, 0, &info), INTERP_INVALID_ARGUMENT, "predictor is NULL");
  info.struct_size = 1;
  CHECK_FAILS(interp_predictor_input(predictor, 0, &info), INTERP_INVALID_ARGUMENT,
              "info.struct_size is 1");
}

static float sum(const float* values, size_t count) {
  float total = 0;
  size_t i;
  for (i = 0; i < count; ++i) total += values[i];
  return total;
}

static void results_own_their_memory(const char* digits) {
  interp_predictor* predictor = load(digits, 1);
  const interp_tensor feed = image();
  interp_tensor output = {.struct_size = sizeof output};
  interp_result* result = NULL;
  CHECK(interp_predictor_run(predictor, &feed, 1, NULL, &result) == INTERP_OK);
  interp_predictor_free(predictor);
  CHECK(interp_result_size(result) == 1);
  CHECK(interp_result_get(result, 0, &output) == INTERP_OK);
  CHECK(output.dtype == INTERP_FLOAT32 && output.rank == 2 && output.dims[1] == 10);
  CHECK(output.size_bytes == 40 && output.num_lod_levels == 0);
  CHECK(sum(output.data, 10) > 0.999F && sum(output.data, 10) < 1.001F);
  CHECK_FAILS(interp_result_get(result, 1, &output), INTERP_INVALID_ARGUMENT,
              "index is 1, expected less than 1");
  CHECK_FAILS(interp_result_get(result, 0, NULL), INTERP_INVALID_ARGUMENT, "tensor is NULL");
  CHECK_FAILS(interp_result_get(NULL, 0, &output), INTERP_INVALID_ARGUMENT, "result is NULL");
  interp_result_free(result);
  interp_result_free(NULL);
  interp_predictor_free(NULL);
  interp_cancel_token_free(NULL);
}

static void outputs_go_to_memory_of_the_caller(interp_predictor* predictor) {
  const interp_tensor feed = image();
  float p[10] = {-1};
  interp_memory memory = {p, sizeof p};
  interp_tensor output = {.struct_size = sizeof output};
  interp_result* result = NULL;
  memory.size_bytes = 39;
  CHECK_FAILS(interp_predictor_run_into(predictor, &feed, 1, &memory, 1, NULL, NULL),
              INTERP_INVALID_ARGUMENT, "40 bytes, but the memory for it has 39");
  CHECK(p[0] == -1);
  memory.size_bytes = sizeof p;
  CHECK(interp_predictor_run_into(predictor, &feed, 1, &memory, 1, NULL, &result) == INTERP_OK);
  CHECK(sum(p, 10) > 0.999F);
  CHECK(interp_result_get(result, 0, &output) == INTERP_OK && output.data == p);
  interp_result_free(result);
  CHECK_FAILS(interp_predictor_run_into(predictor, &feed, 1, &memory, 2, NULL, NULL),
              INTERP_INVALID_ARGUMENT, "there is memory for 2 outputs, expected 1");
  memory.data = NULL;
  CHECK_FAILS(interp_predictor_run_into(predictor, &feed, 1, &memory, 1, NULL, NULL),
              INTERP_INVALID_ARGUMENT, "outputs[0].data is NULL");
  CHECK_FAILS(interp_predictor_run_into(predictor, &feed, 1, NULL, 1, NULL, NULL),
              INTERP_INVALID_ARGUMENT, "outputs is NULL");
}

static void feeds_that_do_not_fit_are_errors(interp_predictor* predictor) {
  const int64_t negative[] = {1, 1, -28, 28};
  const int64_t vast[] = {INT64_MAX, INT64_MAX, 28, 28};
  interp_result* result = NULL;
  interp_tensor feed = image();
#define FEED_FAILS(text)                                                                         \
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 1, NULL, &result), INTERP_INVALID_ARGUMENT, \
              text);                                                                             \
  CHECK(result == NULL);                                                                         \
  feed = image()
  feed.struct_size = 16;
  FEED_FAILS("tensor.struct_size is 16");
  feed.dtype = 99;
  FEED_FAILS("dtype 99 is none");
  feed.dtype = INTERP_INT32;
  FEED_FAILS("int32");
  feed.rank = -1;
  FEED_FAILS("rank is -1, expected 0 to 9");
  feed.rank = 3;
  FEED_FAILS("");
  feed.dims = NULL;
  FEED_FAILS("dims is NULL");
  feed.dims = negative;
  FEED_FAILS("dims are [1,1,-28,28]");
  feed.dims = vast;
  FEED_FAILS("expected sizes that memory can have");
  feed.size_bytes = 3000;
  FEED_FAILS("size_bytes is 3000, but float32[1,1,28,28] takes 3136");
  feed.data = NULL;
  FEED_FAILS("data is NULL");
  feed.data = (const char*)blank + 1;
  FEED_FAILS("not aligned to 4 bytes");
  feed.num_lod_levels = 1;
  FEED_FAILS("lod is NULL");
  feed.rank = INT32_MAX;
  FEED_FAILS("rank is 2147483647, expected 0 to 9");
  feed.dtype = INTERP_UNDEFINED;
  FEED_FAILS("dtype -1 is none");
#undef FEED_FAILS
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 0, NULL, &result), INTERP_INVALID_ARGUMENT,
              "there are 0 feeds, expected 1");
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 1, NULL, &result), INTERP_INVALID_ARGUMENT,
              "feeds is NULL");
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 1, NULL, NULL), INTERP_INVALID_ARGUMENT,
              "result is NULL");
  CHECK(interp_predictor_run(predictor, &feed, 1, NULL, &result) == INTERP_OK);
  interp_result_free(result);
}

static void lods_go_in_and_come_out(void) {
  interp_predictor* predictor = load_text("sequences.txt",
                                          "program version=0\n"
                                          "block 0\n"
                                          "  var x float32[-1,1] lod=1\n"
                                          "  var pooled float32[-1,1]\n"
                                          "  var y float32[-1,1] lod=1\n"
                                          "  scale(X=x) -> (Out=y) {scale=2.0}\n",
                                          "x", "y");
  const float values[] = {1, 2, 3};
  const int64_t dims[] = {3, 1};
  int64_t offsets[] = {0, 1, 3};
  const int64_t* const lod[] = {offsets};
  size_t lod_sizes[] = {3};
  interp_tensor feed = {.struct_size = sizeof feed,
                        .data = values,
                        .size_bytes = sizeof values,
                        .dims = dims,
                        .rank = 2,
                        .dtype = INTERP_FLOAT32,
                        .lod = lod,
                        .lod_sizes = lod_sizes,
                        .num_lod_levels = 1};
  interp_tensor output = {.struct_size = sizeof output};
  interp_result* result = NULL;
  CHECK(interp_predictor_run(predictor, &feed, 1, NULL, &result) == INTERP_OK);
  CHECK(interp_result_get(result, 0, &output) == INTERP_OK);
  CHECK(output.num_lod_levels == 1 && output.lod_sizes[0] == 3 && output.lod[0][1] == 1);
  CHECK(((const float*)output.data)[2] == 6);
  interp_result_free(result);
  offsets[2] = 4;
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 1, NULL, &result), INTERP_INVALID_ARGUMENT,
              "LoD level 0 ends with 4, expected 3");
  lod_sizes[0] = SIZE_MAX;
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 1, NULL, &result), INTERP_INVALID_ARGUMENT,
              "lod_sizes[0] is 18446744073709551615, expected 0 to");
  feed.num_lod_levels = SIZE_MAX;
  CHECK_FAILS(interp_predictor_run(predictor, &feed, 1, NULL, &result), INTERP_INVALID_ARGUMENT,
              "num_lod_levels is 18446744073709551615, expected 0 to 64");
  interp_predictor_free(predictor);
}

/* A loop that has no end but that of the call. */
static interp_predictor* load_endless(void) {
  return load_text("endless.txt",
                   "program version=0\n"
                   "block 0\n"
                   "  var i float32[1]\n"
                   "  var zero float32[1]\n"
                   "  var go bool[1]\n"
                   "  var scopes step_scopes\n"
                   "  fill_constant() -> (Out=i) {shape=longs:[1], value=1.0, dtype=5}\n"
                   "  fill_constant() -> (Out=zero) {shape=longs:[1], value=0.0, dtype=5}\n"
                   "  less_than(X=zero, Y=i) -> (Out=go)\n"
                   "  while(X=[i,zero], Condition=go) -> (Out=[i,go], StepScopes=scopes) "
                   "{sub_block=block:1}\n"
                   "block 1 parent=0\n"
                   "  scale(X=i) -> (Out=i) {scale=1.0}\n"
                   "  less_than(X=zero, Y=i) -> (Out=go)\n",
                   NULL, "i");
}

static void* cancel(void* token) {
  interp_cancel_token_cancel(token);
  return NULL;
}

static void calls_end_when_they_shall(void) {
  interp_predictor* predictor = load_endless();
  interp_run_options options = {.struct_size = sizeof options};
  interp_result* result = NULL;
  interp_cancel_token* token = NULL;
  pthread_t other;
  options.timeout_ns = 20 * 1000 * 1000;
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 0, &options, &result), INTERP_DEADLINE_EXCEEDED,
              "");
  options.timeout_ns = -1;
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 0, &options, &result), INTERP_INVALID_ARGUMENT,
              "options.timeout_ns is -1, expected 0 or more");
  options.timeout_ns = INT64_MAX;
  CHECK(interp_cancel_token_create(&token) == INTERP_OK);
  options.cancel = token;
  CHECK(pthread_create(&other, NULL, cancel, token) == 0);
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 0, &options, &result), INTERP_CANCELLED,
              "cancelled");
  CHECK(pthread_join(other, NULL) == 0);
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 0, &options, &result), INTERP_CANCELLED,
              "cancelled");
  interp_cancel_token_free(token);
  CHECK_FAILS(interp_cancel_token_create(NULL), INTERP_INVALID_ARGUMENT, "token is NULL");
  CHECK_FAILS(interp_cancel_token_cancel(NULL), INTERP_INVALID_ARGUMENT, "token is NULL");
  options.struct_size = 0;
  CHECK_FAILS(interp_predictor_run(predictor, NULL, 0, &options, &result), INTERP_INVALID_ARGUMENT,
              "options.struct_size is 0");
  interp_predictor_free(predictor);
}

enum { kThreads = 4, kCalls = 50 };

struct caller {
  interp_predictor* predictor;
  float first[10];
  int wrong;
};

/* Every other call fails, so that messages of threads could mix. */
static void* call_often(void* argument) {
  struct caller* const caller = argument;
  float p[10];
  const interp_memory memory = {p, sizeof p};
  const interp_tensor feed = image();
  int i;
  for (i = 0; i < kCalls; ++i) {
    if (interp_predictor_run_into(caller->predictor, &feed, 1, &memory, 1, NULL, NULL) !=
            INTERP_OK ||
        memcmp(p, caller->first, sizeof p) != 0 ||
        interp_predictor_run_into(caller->predictor, &feed, 1, NULL, 1, NULL, NULL) == INTERP_OK ||
        strcmp(interp_last_error(), "outputs is NULL") != 0) {
      ++caller->wrong;
    }
  }
  return NULL;
}

static void threads_share_a_predictor(const char* digits) {
  struct caller callers[kThreads] = {{NULL, {0}, 0}};
  pthread_t threads[kThreads];
  interp_predictor* predictor = load(digits, 2);
  const interp_tensor feed = image();
  const interp_memory memory = {callers[0].first, sizeof callers[0].first};
  int i;
  CHECK(interp_predictor_run_into(predictor, &feed, 1, &memory, 1, NULL, NULL) == INTERP_OK);
  for (i = 0; i < kThreads; ++i) {
    callers[i].predictor = predictor;
    memcpy(callers[i].first, callers[0].first, sizeof callers[i].first);
    CHECK(pthread_create(&threads[i], NULL, call_often, &callers[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(callers[i].wrong == 0);
  }
  interp_predictor_free(predictor);
}

int main(int argc, char** argv) {
  interp_predictor* predictor;
  if (argc != 3) return 2;
  temporary_folder = argv[2];
  versions_and_names();
  loading_says_what_is_wrong(argv[1]);
  predictor = load(argv[1], 1);
  inputs_and_outputs_are_told(predictor);
  outputs_go_to_memory_of_the_caller(predictor);
  feeds_that_do_not_fit_are_errors(predictor);
  interp_predictor_free(predictor);
  results_own_their_memory(argv[1]);
  lods_go_in_and_come_out();
  calls_end_when_they_shall();
  threads_share_a_predictor(argv[1]);
  if (failures == 0) printf("all is well\n");
  return failures == 0 ? 0 : 1;
}
