# Warnings and sanitizers live in one target, linked by everything that is ours.
add_library(tt_flags INTERFACE)
target_compile_options(tt_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -fno-math-errno -fno-trapping-math -ffp-contract=off -fvisibility=hidden -fno-omit-frame-pointer)
target_compile_definitions(tt_flags INTERFACE _GNU_SOURCE TT_VERSION="${PROJECT_VERSION}")
target_include_directories(tt_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
if(TT_WERROR)
  target_compile_options(tt_flags INTERFACE -Werror)
endif()
if(TT_SANITIZE)
  target_compile_options(tt_flags INTERFACE -fsanitize=${TT_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tt_flags INTERFACE -fsanitize=${TT_SANITIZE})
  if(TT_SANITIZE MATCHES address AND NOT TT_FUZZ) # at a fixed place: else each start moves 290,000 pointers, 9 ms of 30
    target_link_options(tt_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()
if(TT_COVERAGE)
  target_compile_options(tt_flags INTERFACE --coverage)
  target_link_options(tt_flags INTERFACE --coverage)
endif()
