# SPDX-License-Identifier: Apache-2.0
# An overlay port: vcpkg install tfplug --overlay-ports=DIRECTORY_OF_TFPLUG/packaging
set(VCPKG_BUILD_TYPE release)  # headers only
set(VCPKG_POLICY_EMPTY_LIB_FOLDER enabled)
# find_package looks in share/cmake/tfplug, too.
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}" OPTIONS -Dtests=disabled -Dexamples=disabled)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
