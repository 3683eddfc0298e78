#include "storage/checkpoint/manifest_json.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"

namespace troupe {
namespace {

using nlohmann::json;

absl::StatusOr<ManifestShard> ShardFromJson(const json& entry) {
  ManifestShard shard;
  ASSIGN_OR_RETURN(shard.file, StringField(entry, "file"));
  ASSIGN_OR_RETURN(shard.key, StringField(entry, "key"));
  ASSIGN_OR_RETURN(shard.box.start, IntsField(entry, "start"));
  ASSIGN_OR_RETURN(shard.box.shape, IntsField(entry, "shape"));
  return shard;
}

absl::StatusOr<ManifestTensor> NamedTensorFromJson(std::string name,
                                                   const json& entry) {
  ManifestTensor tensor;
  tensor.name = std::move(name);
  ASSIGN_OR_RETURN(const std::string dtype, StringField(entry, "dtype"));
  ASSIGN_OR_RETURN(tensor.dtype, ParseStoredDType(dtype));
  ASSIGN_OR_RETURN(tensor.shape, IntsField(entry, "shape"));
  ASSIGN_OR_RETURN(const json* const shards, ArrayField(entry, "shards"));
  for (const json& item : *shards) {
    ASSIGN_OR_RETURN(ManifestShard shard, ShardFromJson(item));
    tensor.shards.push_back(std::move(shard));
  }
  return tensor;
}

}  // namespace

std::string FormatCrc(uint32_t crc) {
  return absl::StrCat(absl::Hex(crc, absl::kZeroPad8));
}

json TensorToJson(const ManifestTensor& tensor) {
  json shards = json::array();
  for (const ManifestShard& shard : tensor.shards) {
    shards.push_back({{"file", shard.file},
                      {"key", shard.key},
                      {"start", shard.box.start},
                      {"shape", shard.box.shape}});
  }
  return {{"name", tensor.name},
          {"dtype", StoredDTypeName(tensor.dtype)},
          {"shape", tensor.shape},
          {"shards", std::move(shards)}};
}

absl::StatusOr<ManifestTensor> TensorFromJson(const json& entry) {
  ASSIGN_OR_RETURN(std::string name, StringField(entry, "name"));
  const std::string where = absl::StrCat("tensor ", name);
  absl::StatusOr<ManifestTensor> tensor =
      NamedTensorFromJson(std::move(name), entry);
  if (!tensor.ok()) return Annotate(tensor.status(), where);
  return tensor;
}

json FileToJson(const ManifestFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"crc32c", FormatCrc(file.crc32c)}};
}

absl::StatusOr<ManifestFile> FileFromJson(const json& entry) {
  ManifestFile file;
  ASSIGN_OR_RETURN(file.name, StringField(entry, "name"));
  ASSIGN_OR_RETURN(file.bytes, UintField(entry, "bytes"));
  ASSIGN_OR_RETURN(const std::string crc, StringField(entry, "crc32c"));
  uint32_t value = 0;
  if (crc.size() != 8 || !absl::SimpleHexAtoi(crc, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("file ", file.name,
                     ": \"crc32c\" must be 8 hexadecimal "
                     "digits, found \"",
                     crc, "\""));
  }
  file.crc32c = value;
  return file;
}

}  // namespace troupe
