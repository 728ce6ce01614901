# The compiler of kernels for NVIDIA's cards: CMake's own search (CUDACXX, PATH, /usr/local/cuda), else what tools/install-cuda has put
# into the cache; without one there is no tutti-cuda.so. Sets TT_CUDA_FOUND. Included in the folder whose targets are compiled by it.
set(TT_CUDA AUTO CACHE STRING "build tutti-cuda.so, for NVIDIA's cards: AUTO (where a compiler is), ON (it is an error if none is), OFF")
# Code of each architecture, and of the oldest as PTX too, which any newer driver translates.
set(TT_CUDA_ARCHITECTURES 80 89-real 90-real 100-real 120-real CACHE STRING "what cards tutti-cuda.so is for; native: those of this machine")
set(TT_CUDA_FOUND FALSE)
set(TT_CUDA_OLDEST 12.8) # the first that knows all of them

function(tt_cuda_missing why)
  if(TT_CUDA STREQUAL ON)
    message(FATAL_ERROR "TT_CUDA=ON: ${why}")
  endif()
  message(STATUS "No tutti-cuda.so: ${why}")
endfunction()

if(TT_CUDA AND NOT TT_SANITIZE AND NOT TT_FUZZ AND NOT TT_COVERAGE)
  if(NOT CMAKE_CUDA_COMPILER)
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/install-cuda --where OUTPUT_VARIABLE tt_cuda_cache
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(EXISTS ${tt_cuda_cache}/.complete)
      unset(CMAKE_CUDA_COMPILER) # of check_language, which would stand before the cache's
      set(CMAKE_CUDA_COMPILER ${tt_cuda_cache}/toolkit/bin/nvcc CACHE FILEPATH "" FORCE)
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES ${TT_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS TT_CUDA_OLDEST)
      tt_cuda_missing("${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}, and ${TT_CUDA_OLDEST} is the oldest that will do")
    else()
      set(TT_CUDA_FOUND TRUE)
    endif()
  else()
    tt_cuda_missing("there is no nvcc (a CUDA toolkit, or tools/install-cuda, brings it)")
  endif()
endif()
