# tt_library(tt_foo SOURCES a.c b.c LINK tt_base PkgConfig::x): a static library of ours.
function(tt_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC ${A_LINK} PRIVATE tt_flags)
endfunction()

# What ctest knows of a test: [TIMEOUT s] [COST s] [WAITS] [LABELS ...]. ./dev test gives ctest three slots a core, and one
# over: a test takes two, one that mostly waits (WAITS) one, so that no core is idle beside it.
# COST: the seconds of one that takes more than ten; the longest start first.
# STRICT always|ci: a second time on the backend cpu-strict, as NAME.strict with the label strict; ci: only ./dev test --all,
# and so .ci/run, has it.
function(tt_test_properties name dir default_timeout)
  cmake_parse_arguments(A "WAITS" "TIMEOUT;COST;STRICT" "LINK;SOURCES;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT ${default_timeout})
  endif()
  if(TT_SANITIZE) # slower by far, even though the tests do less
    math(EXPR A_TIMEOUT "3 * ${A_TIMEOUT}")
  endif()
  set(slots 2)
  if(A_WAITS)
    set(slots 1)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${dir};${A_LABELS}" PROCESSORS ${slots})
  if(A_COST)
    set_tests_properties(${name} PROPERTIES COST ${A_COST})
  endif()
endfunction()

# The second registration of a test that has STRICT; `command` and `environment` are the first one's.
function(tt_test_strict name dir default_timeout command environment)
  cmake_parse_arguments(A "WAITS" "TIMEOUT;COST;STRICT" "LINK;SOURCES;LABELS" ${ARGN})
  if(NOT A_STRICT)
    return()
  elseif(NOT A_STRICT MATCHES "^(always|ci)$")
    message(FATAL_ERROR "${name}: STRICT ${A_STRICT}; always and ci are possible")
  endif()
  add_test(NAME ${name}.strict COMMAND ${command})
  tt_test_properties(${name}.strict ${dir} ${default_timeout} ${ARGN})
  set(labels ${dir} ${A_LABELS} strict)
  if(A_STRICT STREQUAL ci)
    list(APPEND labels ci)
  endif()
  set_tests_properties(${name}.strict PROPERTIES LABELS "${labels}"
    ENVIRONMENT "TT_DEVICE=cpu-strict;${environment}")
endfunction()

# Under AddressSanitizer roles compute on cpu-strict; without, on cpu: so both are there for every test of a role.
function(tt_test_device name dir)
  if(TT_SANITIZE MATCHES address AND dir MATCHES "^(learner|collector|e2e|chaos)$")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "TT_DEVICE=cpu-strict")
  endif()
endfunction()

# tt_test(base rng LINK tt_base): tests/base/test_rng.c becomes the test base.rng. Unit tests use cmocka. There are hundreds of them in
# each preset: where there is gold they are linked by it, in less than half of ld's time.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold TT_HAS_GOLD)
add_custom_target(thread_tests) # those labelled threads, which are all that the preset tsan runs
function(tt_test dir name)
  cmake_parse_arguments(A "WAITS" "TIMEOUT;COST;STRICT" "LINK;SOURCES;LABELS" ${ARGN})
  add_executable(test_${dir}_${name} ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.c ${A_SOURCES})
  target_link_libraries(test_${dir}_${name} PRIVATE ${A_LINK} PkgConfig::cmocka tt_flags)
  target_link_options(test_${dir}_${name} PRIVATE $<$<BOOL:${TT_HAS_GOLD}>:-fuse-ld=gold>)
  target_compile_definitions(test_${dir}_${name} PRIVATE
    TT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TT_BINARY="$<TARGET_FILE_DIR:tutti>/tutti")
  add_test(NAME ${dir}.${name} COMMAND test_${dir}_${name})
  tt_test_properties(${dir}.${name} ${dir} 60 ${ARGN})
  tt_test_device(${dir}.${name} ${dir})
  tt_test_strict(${dir}.${name} ${dir} 60 test_${dir}_${name} "" ${ARGN})
  if("threads" IN_LIST A_LABELS)
    add_dependencies(thread_tests test_${dir}_${name} tutti)
  endif()
endfunction()

# tt_script_test(e2e demo.sh): a shell or Python test that gets the path of the binary in TUTTI; exit 77 means skipped.
function(tt_script_test dir script)
  get_filename_component(stem ${script} NAME_WE)
  add_test(NAME ${dir}.${stem} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  tt_test_properties(${dir}.${stem} ${dir} 120 ${ARGN})
  set(environment "TUTTI=$<TARGET_FILE:tutti>;TT_SOURCE_DIR=${PROJECT_SOURCE_DIR};TT_BUILD_DIR=${PROJECT_BINARY_DIR};TT_SANITIZE=${TT_SANITIZE}")
  if(NOT dir STREQUAL "k8s") # whose programs are kept where all checkouts find them
    list(APPEND environment "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache")
  endif()
  set_tests_properties(${dir}.${stem} PROPERTIES ENVIRONMENT "${environment}")
  tt_test_device(${dir}.${stem} ${dir})
  tt_test_strict(${dir}.${stem} ${dir} 120 ${CMAKE_CURRENT_SOURCE_DIR}/${script} "${environment}" ${ARGN})
  foreach(name ${dir}.${stem} ${dir}.${stem}.strict)
    if(TEST ${name})
      set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    endif()
  endforeach()
endfunction()

# tt_fuzz(yaml LINK tt_config): tests/fuzz/fuzz_yaml.c becomes a libFuzzer program, seeded from tests/fuzz/corpus/yaml.
function(tt_fuzz name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_executable(fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_${name}.c ${A_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${A_LINK} tt_flags)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers fuzz_${name})
endfunction()
