# Every library we use, found once. docs/architecture.md section 7 says why each.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(zmq REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(czmq REQUIRED IMPORTED_TARGET libczmq)
pkg_search_module(msgpack REQUIRED IMPORTED_TARGET msgpack-c msgpack) # the name changed between releases
# Debian 13's msgpack-c.pc names a folder of headers that begins nowhere ("include"); they lie where the compiler looks anyway.
get_target_property(msgpack_folders PkgConfig::msgpack INTERFACE_INCLUDE_DIRECTORIES)
if(msgpack_folders)
  list(FILTER msgpack_folders INCLUDE REGEX "^/")
  set_target_properties(PkgConfig::msgpack PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${msgpack_folders}")
endif()
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(libcurl REQUIRED libcurl>=7.85) # the header alone
pkg_check_modules(libpng REQUIRED libpng>=1.6.22) # the header alone
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium) # SHA-256 of the weights
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
if(BUILD_TESTING)
  pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)
endif()
