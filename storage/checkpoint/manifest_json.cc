#include "storage/checkpoint/manifest_json.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr uint64_t kStepsMax = uint64_t{1} << 62;

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

absl::StatusOr<uint32_t> ParseCrc(absl::string_view digits) {
  uint32_t value = 0;
  if (digits.size() == 8 && absl::SimpleHexAtoi(digits, &value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("must be 8 hexadecimal digits, found \"", digits, "\""));
}

absl::Status BlocksFromJson(const json& entry, ManifestFile& file) {
  if (!entry.contains("block_crc32c")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t block_bytes, UintField(entry, "block_bytes"));
  ASSIGN_OR_RETURN(const std::string digits,
                   StringField(entry, "block_crc32c"));
  const uint64_t count = (file.bytes + kBlockBytes - 1) / kBlockBytes;
  if (block_bytes != kBlockBytes || digits.size() != 8 * count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file ", file.name, ": ", digits.size(), " digits of \"block_crc32c\" ",
        "for blocks of ", block_bytes, " bytes; ", file.bytes, " bytes have ",
        count, " blocks of ", kBlockBytes));
  }
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const uint32_t crc, ParseCrc(digits.substr(8 * i, 8)));
    file.blocks.push_back(crc);
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatCrc(uint32_t crc) {
  return absl::StrCat(absl::Hex(crc, absl::kZeroPad8));
}

json LossScaleToJson(const ManifestLossScale& loss_scale) {
  return {{"scale", loss_scale.scale},
          {"good_steps", loss_scale.good_steps},
          {"skipped_steps", loss_scale.skipped_steps}};
}

absl::StatusOr<ManifestLossScale> LossScaleFromJson(const json& entry) {
  if (!entry.is_object()) {
    return absl::InvalidArgumentError("\"loss_scale\" must be an object");
  }
  ManifestLossScale loss_scale;
  ASSIGN_OR_RETURN(loss_scale.scale, NumberField(entry, "scale"));
  ASSIGN_OR_RETURN(const uint64_t good, UintField(entry, "good_steps"));
  ASSIGN_OR_RETURN(const uint64_t skipped, UintField(entry, "skipped_steps"));
  if (!(loss_scale.scale >= 0) || std::isinf(loss_scale.scale) ||
      good > kStepsMax || skipped > kStepsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"loss_scale\" has a scale of ", loss_scale.scale, ", ",
                     good, " good and ", skipped, " skipped steps"));
  }
  loss_scale.good_steps = static_cast<int64_t>(good);
  loss_scale.skipped_steps = static_cast<int64_t>(skipped);
  return loss_scale;
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
  json entry = {{"name", file.name},
                {"bytes", file.bytes},
                {"crc32c", FormatCrc(file.crc32c)}};
  if (!file.blocks.empty()) {
    entry["block_bytes"] = kBlockBytes;
    entry["block_crc32c"] =
        absl::StrJoin(file.blocks, "", [](std::string* out, uint32_t crc) {
          absl::StrAppend(out, FormatCrc(crc));
        });
  }
  return entry;
}

absl::StatusOr<ManifestFile> FileFromJson(const json& entry) {
  ManifestFile file;
  ASSIGN_OR_RETURN(file.name, StringField(entry, "name"));
  ASSIGN_OR_RETURN(file.bytes, UintField(entry, "bytes"));
  ASSIGN_OR_RETURN(const std::string crc, StringField(entry, "crc32c"));
  const absl::StatusOr<uint32_t> value = ParseCrc(crc);
  if (!value.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file ", file.name, ": \"crc32c\" ", value.status().message()));
  }
  file.crc32c = *value;
  RETURN_IF_ERROR(BlocksFromJson(entry, file));
  return file;
}

}  // namespace troupe
