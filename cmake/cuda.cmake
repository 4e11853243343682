# What directories with sources for nvcc include: the language, the GPUs to build for, CUDA's libraries
# and cuDNN 9, and interp_cuda_options(TARGET). From Ampere on, and PTX for what comes later.
set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90-real 100 CACHE STRING "GPUs to build kernels for")
if(INTERP_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${INTERP_CCACHE})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25 does not know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
find_path(INTERP_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(INTERP_CUDNN cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NOT INTERP_CUDNN_INCLUDE OR NOT INTERP_CUDNN)
  message(FATAL_ERROR "INTERP_CUDA is ON, and there is no cuDNN 9: cudnn_graph.h (INTERP_CUDNN_INCLUDE: "
    "${INTERP_CUDNN_INCLUDE}) and libcudnn.so (INTERP_CUDNN: ${INTERP_CUDNN})")
endif()
# NCCL itself is looked for when a program needs it.
find_path(INTERP_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
# Options for C++ compilers are not nvcc's.
set_directory_properties(PROPERTIES COMPILE_OPTIONS "")

function(interp_cuda_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>
    # Headers of the host's kernels have vectors that no function here takes.
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-Wno-psabi>)
  # Not first, where they would hide headers beside other libraries.
  target_include_directories(${target} AFTER PRIVATE ${INTERP_CUDNN_INCLUDE}
    $<$<BOOL:${INTERP_NCCL_INCLUDE}>:${INTERP_NCCL_INCLUDE}>)
  target_link_libraries(${target} PRIVATE interp CUDA::cudart_static CUDA::cublasLt ${INTERP_CUDNN}
    DNNL::dnnl OpenMP::OpenMP_CXX)
endfunction()
