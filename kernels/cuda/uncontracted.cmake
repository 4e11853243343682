# Kernels whose results are compared with thresholds, or rounded to pixels and numbers, as the host's are:
# without fused multiply-adds that the source does not ask for, in both worlds.
set(INTERP_UNCONTRACTED_KERNELS boxes.cu grid_sample.cu quantize.cu random.cu)
