# After all install() rules: share/tutti/installed lists what they put below the prefix, for ./dev uninstall.
install(CODE "set(tutti_list \"${CMAKE_INSTALL_DATADIR}/tutti/installed\")")
install(CODE [[
  set(tutti_names "")
  foreach(tutti_file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    file(RELATIVE_PATH tutti_name "${CMAKE_INSTALL_PREFIX}" "${tutti_file}")
    string(APPEND tutti_names "${tutti_name}\n")
  endforeach()
  file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${tutti_list}" "${tutti_names}")
]])
