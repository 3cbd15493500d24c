# SPDX-License-Identifier: Apache-2.0
"""A Conan 2 recipe of the headers: conan create packaging/conan

Consumers get the targets tfplug::tfplug and tfplug::plugin, as from the CMake package.
"""

import pathlib
import re

from conan import ConanFile
from conan.tools.files import copy

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tfplug(ConanFile):
    name = "tfplug"
    license = "Apache-2.0"
    description = "TensorFlow plug-ins as C++ classes"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def set_version(self):
        build = (ROOT / "meson.build").read_text()
        self.version = re.search(r"\n  version: '([^']+)'", build)[1]

    def export_sources(self):
        copy(self, "include/tfplug/*", ROOT, self.export_sources_folder)
        copy(self, "LICENSE", ROOT, self.export_sources_folder)

    def requirements(self):
        # Static and position-independent, so that each plug-in contains its own.
        self.requires("abseil/[>=20220623]", transitive_headers=True,
                      transitive_libs=True,
                      options={"shared": False, "fPIC": True})

    def package(self):
        copy(self, "include/*", self.source_folder, self.package_folder)
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")

    def package_id(self):
        self.info.clear()

    def package_info(self):
        headers = self.cpp_info.components["tfplug"]
        headers.bindirs, headers.libdirs = [], []
        headers.cxxflags = ["-fvisibility=hidden"]
        headers.system_libs = ["dl", "pthread"]
        headers.requires = ["abseil::abseil"]
        headers.set_property("cmake_target_name", "tfplug::tfplug")
        headers.set_property("pkg_config_name", "tfplug")

        plugin = self.cpp_info.components["plugin"]
        plugin.bindirs, plugin.libdirs, plugin.includedirs = [], [], []
        plugin.requires = ["tfplug"]
        plugin.cxxflags = ["-fvisibility-inlines-hidden", "-ffunction-sections",
                           "-fdata-sections"]
        plugin.sharedlinkflags = [
            f"-Wl,--version-script={self.package_folder}/include/tfplug/plugin.map",
            "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,--no-undefined",
            "-Wl,-z,nodynamic-undefined-weak"]
        plugin.set_property("cmake_target_name", "tfplug::plugin")
        plugin.set_property("pkg_config_name", "tfplug-plugin")
