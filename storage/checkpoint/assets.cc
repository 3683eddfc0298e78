#include "storage/checkpoint/assets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/new_file.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

absl::StatusOr<ManifestFile> FindCarriedFile(const std::string& checkpoint,
                                             absl::string_view name) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  const auto it =
      std::find_if(manifest.assets.begin(), manifest.assets.end(),
                   [&](const ManifestFile& file) { return file.name == name; });
  if (it != manifest.assets.end()) return *it;
  return absl::NotFoundError(
      absl::StrCat(checkpoint, ": carries no file ", name));
}

}  // namespace

absl::StatusOr<CarriedFile> LoadCarriedFile(const std::string& name,
                                            const std::string& path) {
  ASSIGN_OR_RETURN(std::string bytes,
                   ReadWholeFile(path, kCarriedFileBytesMax));
  return CarriedFile{name, std::move(bytes)};
}

std::string AssetPath(const std::string& checkpoint, absl::string_view name) {
  return absl::StrCat(checkpoint, "/", kAssetsFolder, "/", name);
}

absl::StatusOr<std::string> CarriedFilePath(const std::string& checkpoint,
                                            absl::string_view name) {
  RETURN_IF_ERROR(FindCarriedFile(checkpoint, name).status());
  return AssetPath(checkpoint, name);
}

absl::StatusOr<std::string> ReadCarriedFile(const std::string& checkpoint,
                                            absl::string_view name) {
  ASSIGN_OR_RETURN(const ManifestFile want, FindCarriedFile(checkpoint, name));
  const std::string path = AssetPath(checkpoint, name);
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, kCarriedFileBytesMax);
  if (absl::IsNotFound(bytes.status())) {
    return absl::DataLossError(absl::StrCat(path, ": is missing"));
  }
  RETURN_IF_ERROR(bytes.status());
  const uint32_t crc = Crc32c(*bytes);
  if (bytes->size() == want.bytes && crc == want.crc32c) return bytes;
  return absl::DataLossError(absl::StrFormat(
      "%s: has %d bytes with CRC-32C %08x, the manifest says %d with %08x",
      path, bytes->size(), crc, want.bytes, want.crc32c));
}

std::vector<ManifestFile> DescribeCarriedFiles(
    absl::Span<const CarriedFile> files) {
  std::vector<ManifestFile> entries;
  for (const CarriedFile& file : files) {
    entries.push_back({file.name, file.bytes.size(), Crc32c(file.bytes)});
  }
  return entries;
}

absl::Status WriteCarriedFiles(const std::string& directory,
                               absl::Span<const CarriedFile> files) {
  if (files.empty()) return absl::OkStatus();
  const std::string folder = absl::StrCat(directory, "/", kAssetsFolder);
  RETURN_IF_ERROR(MakeDirectories(folder));
  for (const CarriedFile& file : files) {
    RETURN_IF_ERROR(ReplaceFile(AssetPath(directory, file.name), file.bytes));
  }
  return absl::OkStatus();
}

}  // namespace troupe
