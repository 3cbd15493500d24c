# SPDX-License-Identifier: Apache-2.0
# Runs the port of vcpkg without vcpkg: cmake -DPORT=... -DPREFIX=... -DMESON=... -P
# vcpkg.cmake. The functions do what vcpkg's of these names do.
set(CURRENT_PACKAGES_DIR "${PREFIX}")

function(vcpkg_configure_meson)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  execute_process(
    COMMAND "${MESON}" setup "${PREFIX}-build" "${arg_SOURCE_PATH}"
            "--prefix=${PREFIX}" --libdir=lib --wrap-mode=nodownload ${arg_OPTIONS}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_install_meson)
  execute_process(
    COMMAND "${MESON}" install -C "${PREFIX}-build" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(COPY "${PREFIX}/share/pkgconfig" DESTINATION "${PREFIX}/lib")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(COPY ${arg_FILE_LIST} DESTINATION "${PREFIX}/share/tfplug")
endfunction()

set(CMAKE_CURRENT_LIST_DIR "${PORT}")
include("${PORT}/portfile.cmake")
if(NOT EXISTS "${PREFIX}/include/tfplug/plugin.h")
  message(FATAL_ERROR "The port installs no headers.")
endif()
