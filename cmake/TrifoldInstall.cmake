# SPDX-License-Identifier: BSD-3-Clause
# find_package(trifold) and pkg-config, from an install tree or from the build tree.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trifold)
install(TARGETS trifold EXPORT trifold-targets COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT trifold-targets NAMESPACE trifold:: DESTINATION ${package_dir} COMPONENT library)
export(EXPORT trifold-targets NAMESPACE trifold:: FILE ${PROJECT_BINARY_DIR}/trifold-targets.cmake)

configure_file(${CMAKE_CURRENT_LIST_DIR}/trifold-config.cmake.in ${PROJECT_BINARY_DIR}/trifold-config.cmake @ONLY)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trifold-config-version.cmake COMPATIBILITY SameMinorVersion)

# From where the file lies, so that it is right for `cmake --install --prefix` and for a tree that is moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(package_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(package_prefix "\${pcfiledir}/${up}")
endif()
foreach(dir IN ITEMS INCLUDEDIR LIBDIR)
  string(TOLOWER package_${dir} variable)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(${variable} "${CMAKE_INSTALL_${dir}}")
  else()
    set(${variable} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/trifold.pc.in ${PROJECT_BINARY_DIR}/trifold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/trifold-config.cmake ${PROJECT_BINARY_DIR}/trifold-config-version.cmake
        DESTINATION ${package_dir} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/trifold.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
# Who passes it on passes these on.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
