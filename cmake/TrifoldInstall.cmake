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
configure_file(${CMAKE_CURRENT_LIST_DIR}/trifold.pc.in ${PROJECT_BINARY_DIR}/trifold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/trifold-config.cmake ${PROJECT_BINARY_DIR}/trifold-config-version.cmake
        DESTINATION ${package_dir} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/trifold.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
