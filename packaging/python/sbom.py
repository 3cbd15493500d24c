# SPDX-License-Identifier: Apache-2.0
"""tfplug sbom: what a plug-in contains, as an SPDX document."""

import datetime
import hashlib
import json
import os
import pathlib
import re
import sys

import tfplug

# An ELF note that TFPLUG_CONTAINS (tfplug/base/contents.h) left in the library: the
# lengths of owner and text, the type 1, the owner, and the text.
_NOTE = re.compile(
    rb"\x07\0{3}.{4}\x01\0{3}tfplug\0\0([!-~]+) ([!-~]+) ([ -~]+)\0", re.DOTALL)


def add_parser(commands):
    parser = commands.add_parser(
        "sbom", help="list what a plug-in contains, as an SPDX document",
        description="Prints an SPDX 2.3 document in JSON: the plug-in and the libraries "
        "that it contains, with versions and licenses. tfplug records itself, Abseil, "
        "Eigen and Protocol Buffers; record others with TFPLUG_CONTAINS.",
        epilog="SOURCE_DATE_EPOCH sets the time of the document.")
    parser.add_argument("library", type=pathlib.Path, help="the plug-in's .so")
    parser.add_argument("--version", default="", help="the plug-in's version")
    parser.set_defaults(run=run)


def components(library):
    """Returns the sorted (name, version, license) of what `library` contains, bytes."""
    found = {tuple(text.decode() for text in match)
             for match in _NOTE.findall(library)}
    return sorted((name, _readable(version) if name == "protobuf" else version, terms)
                  for name, version, terms in found)


def _readable(version):
    """Returns 3.21.12 for protobuf's 3021012."""
    number = int(version)
    return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"


def _package(name, version, terms, **more):
    identifier = re.sub(r"[^A-Za-z0-9.-]", "-", name)
    package = {
        "SPDXID": f"SPDXRef-Package-{identifier}",
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": terms,
        "licenseDeclared": terms,
        "copyrightText": "NOASSERTION",
        **more,
    }
    if version:
        package["versionInfo"] = version
        package["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:generic/{name}@{version}",
        }]
    return package


def _checksums(library):
    return [{"algorithm": "SHA256",
             "checksumValue": hashlib.sha256(library).hexdigest()}]


def document(name, library, version="", beside=()):
    """Returns the SPDX document of a plug-in, whose bytes are `library`, and of the
    libraries that are installed beside it: paths."""
    checksums = _checksums(library)
    digest = checksums[0]["checksumValue"]
    now = datetime.datetime.now(datetime.timezone.utc).timestamp()
    time = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", now)), datetime.timezone.utc)
    plugin = _package(name, version, "NOASSERTION", checksums=checksums)
    others = [_package(path.name, "", "NOASSERTION",
                       checksums=_checksums(path.read_bytes())) for path in beside]
    contained = [_package(*each) for each in components(library)]
    custom = sorted({part for each in contained for part in
                     re.findall(r"LicenseRef-[\w.-]+", each["licenseDeclared"])})
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [f"Tool: tfplug-{tfplug.__version__}"]},
        "hasExtractedLicensingInfos": [
            {"licenseId": each, "extractedText": "The terms of the component's author."}
            for each in custom],
        "packages": [plugin, *contained, *others],
        "relationships": [
            _relationship("SPDXRef-DOCUMENT", "DESCRIBES", plugin),
            *(_relationship(plugin["SPDXID"], "CONTAINS", each) for each in contained),
            *(_relationship(plugin["SPDXID"], "DYNAMIC_LINK", each) for each in others)],
    }


def _relationship(subject, kind, package):
    return {"spdxElementId": subject, "relationshipType": kind,
            "relatedSpdxElement": package["SPDXID"]}


def run(options):
    library = options.library.read_bytes()
    if not components(library):
        print(f"tfplug sbom: {options.library} has no records of what it contains. Build "
              "the plug-in with tfplug 0.1 or newer, and keep its section .note.tfplug.",
              file=sys.stderr)
        return 1
    print(json.dumps(document(options.library.name, library, options.version), indent=2))
    return 0
