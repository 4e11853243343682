/* Reads a digit from a picture of 28 x 28 floats, in C:  read_digit MODEL IMAGE.npy */
#include <interp/interp.h>
#include <stdio.h>

enum { kPixels = 28 * 28, kDigits = 10 };

/* The elements of a .npy file of version 1: behind the header, whose length is at byte 8. */
static int read_pixels(const char* path, float* pixels) {
  unsigned char start[10];
  size_t read = 0;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  if (fread(start, 1, sizeof start, file) == sizeof start &&
      fseek(file, start[8] + 256L * start[9], SEEK_CUR) == 0) {
    read = fread(pixels, sizeof(float), kPixels, file);
  }
  fclose(file);
  return read == kPixels;
}

static interp_status read_digit(interp_predictor* predictor, const float* pixels) {
  const int64_t dims[] = {1, 1, 28, 28};
  float p[kDigits];
  /* The pixels stay ours and are only read. */
  const interp_tensor image = {.struct_size = sizeof image,
                               .data = pixels,
                               .size_bytes = kPixels * sizeof *pixels,
                               .dims = dims,
                               .rank = 4,
                               .dtype = INTERP_FLOAT32};
  const interp_run_options options = {.struct_size = sizeof options,
                                      .timeout_ns = 10 * INT64_C(1000000000)};
  const interp_memory output = {p, sizeof p};
  interp_status status;
  int best = 0;
  int i;
  status = interp_predictor_run_into(predictor, &image, 1, &output, 1, &options, NULL);
  if (status != INTERP_OK) return status;
  for (i = 1; i < kDigits; ++i) {
    if (p[i] > p[best]) best = i;
  }
  printf("digit %d, %.2f %% sure\n", best, 100 * p[best]);
  return INTERP_OK;
}

int main(int argc, char** argv) {
  float pixels[kPixels];
  interp_predictor* predictor = NULL;
  interp_status status;
  if (argc != 3) {
    fprintf(stderr, "usage: read_digit MODEL IMAGE.npy\n");
    return 2;
  }
  if (!read_pixels(argv[2], pixels)) {
    fprintf(stderr, "%s: cannot be read as 28 x 28 floats\n", argv[2]);
    return 2;
  }
  status = interp_predictor_load(argv[1], NULL, NULL, &predictor);
  if (status == INTERP_OK) status = read_digit(predictor, pixels);
  if (status != INTERP_OK) {
    fprintf(stderr, "%s: %s\n", interp_status_name(status), interp_last_error());
  }
  interp_predictor_free(predictor);
  return status == INTERP_OK ? 0 : 1;
}
