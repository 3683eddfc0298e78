#include "storage/checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest_json.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr uint64_t kManifestBytesMax = uint64_t{1} << 30;
// Of steps and samples: what is added to them stays within an int64.
constexpr uint64_t kCountMax = uint64_t{1} << 62;
// Opens the last line; the checksum in it covers all bytes before it.
constexpr absl::string_view kChecksumLine = "\"manifest_crc32c\":";

template <typename T>
std::string JoinLines(const std::vector<T>& items, json (*to_json)(const T&)) {
  return absl::StrJoin(items, ",\n", [&](std::string* out, const T& item) {
    absl::StrAppend(out, "  ", FormatJson(to_json(item)));
  });
}

Manifest Sorted(Manifest manifest) {
  const auto by_name = [](const auto& a, const auto& b) {
    return a.name < b.name;
  };
  std::sort(manifest.tensors.begin(), manifest.tensors.end(), by_name);
  std::sort(manifest.files.begin(), manifest.files.end(), by_name);
  std::sort(manifest.assets.begin(), manifest.assets.end(), by_name);
  for (ManifestTensor& tensor : manifest.tensors) {
    std::sort(tensor.shards.begin(), tensor.shards.end(),
              [](const ManifestShard& a, const ManifestShard& b) {
                return std::tie(a.box.start, a.file, a.key) <
                       std::tie(b.box.start, b.file, b.key);
              });
  }
  return manifest;
}

absl::Status CheckSelfChecksum(absl::string_view text) {
  const size_t at = text.rfind(kChecksumLine);
  if (at == absl::string_view::npos) {
    return absl::DataLossError("has no \"manifest_crc32c\": it is truncated");
  }
  const std::string want = FormatCrc(Crc32c(text.substr(0, at)));
  if (absl::StrContains(text.substr(at), absl::StrCat("\"", want, "\""))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "its own checksum does not fit its content, which has ", want));
}

absl::StatusOr<std::vector<ManifestFile>> ParseFiles(const json& root,
                                                     const char* key) {
  ASSIGN_OR_RETURN(const json* const entries, ArrayField(root, key));
  std::vector<ManifestFile> files;
  for (const json& entry : *entries) {
    ASSIGN_OR_RETURN(ManifestFile file, FileFromJson(entry));
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<uint64_t> CountField(const json& root, const char* key) {
  ASSIGN_OR_RETURN(const uint64_t count, UintField(root, key));
  if (count <= kCountMax) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\" is ", count, "; at most 2^62 makes sense"));
}

absl::StatusOr<Manifest> ParseFields(const json& root) {
  ASSIGN_OR_RETURN(const uint64_t version, UintField(root, "format_version"));
  if (version != kManifestVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "format_version ", version, "; this program reads ", kManifestVersion));
  }
  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.job_name, StringField(root, "job_name"));
  // Those of earlier versions, and of imported models, have none.
  if (root.contains("run_id")) {
    ASSIGN_OR_RETURN(manifest.run_id, StringField(root, "run_id"));
  }
  ASSIGN_OR_RETURN(const uint64_t step, CountField(root, "step"));
  manifest.step = static_cast<int64_t>(step);
  ASSIGN_OR_RETURN(manifest.samples_consumed,
                   CountField(root, "samples_consumed"));
  ASSIGN_OR_RETURN(manifest.seed, UintField(root, "seed"));
  ASSIGN_OR_RETURN(manifest.plan_fingerprint,
                   StringField(root, "plan_fingerprint"));
  ASSIGN_OR_RETURN(manifest.job, StringField(root, "job"));
  ASSIGN_OR_RETURN(manifest.tokenizer, StringField(root, "tokenizer"));
  // Those of earlier versions do not say.
  if (root.contains("data")) {
    ASSIGN_OR_RETURN(manifest.data, StringField(root, "data"));
  }
  ASSIGN_OR_RETURN(manifest.data_unchecked, FlagField(root, "data_unchecked"));
  // Those of jobs that no fp16 job came before have none.
  if (root.contains("loss_scale")) {
    ASSIGN_OR_RETURN(manifest.loss_scale,
                     LossScaleFromJson(root.at("loss_scale")));
  }
  if (manifest.loss_scale.skipped_steps > manifest.step) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"loss_scale\": ", manifest.loss_scale.skipped_steps,
                     " skipped of ", manifest.step, " steps"));
  }
  ASSIGN_OR_RETURN(const std::string created, StringField(root, "created"));
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, created, &manifest.created,
                       &error)) {
    return absl::InvalidArgumentError(absl::StrCat("\"created\": ", error));
  }
  ASSIGN_OR_RETURN(const json* const tensors, ArrayField(root, "tensors"));
  for (const json& entry : *tensors) {
    ASSIGN_OR_RETURN(ManifestTensor tensor, TensorFromJson(entry));
    manifest.tensors.push_back(std::move(tensor));
  }
  ASSIGN_OR_RETURN(manifest.files, ParseFiles(root, "files"));
  // Those of earlier versions have none.
  if (root.contains("assets")) {
    ASSIGN_OR_RETURN(manifest.assets, ParseFiles(root, "assets"));
  }
  return manifest;
}

absl::StatusOr<Manifest> Parse(absl::string_view text) {
  RETURN_IF_ERROR(CheckSelfChecksum(text));
  ASSIGN_OR_RETURN(const json root, ParseJsonObject(text));
  ASSIGN_OR_RETURN(Manifest manifest, ParseFields(root));
  RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

absl::Status CheckFiles(const std::vector<ManifestFile>& files,
                        std::set<std::string>& names) {
  for (const ManifestFile& file : files) {
    if (file.name.empty() || file.name[0] == '.' ||
        absl::StrContains(file.name, '/')) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", file.name, "\" is no name of a file in this directory"));
    }
    if (!names.insert(file.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("file ", file.name, " is there twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatManifest(const Manifest& unsorted) {
  const Manifest manifest = Sorted(unsorted);
  const auto text = [](const std::string& s) { return FormatJson(json(s)); };
  std::string out = absl::StrCat(
      "{\n\"format_version\": ", kManifestVersion,
      ",\n\"job_name\": ", text(manifest.job_name),
      manifest.run_id.empty()
          ? ""
          : absl::StrCat(",\n\"run_id\": ", text(manifest.run_id)),
      ",\n\"step\": ", manifest.step,
      ",\n\"samples_consumed\": ", manifest.samples_consumed,
      ",\n\"seed\": ", manifest.seed,
      ",\n\"plan_fingerprint\": ", text(manifest.plan_fingerprint),
      ",\n\"job\": ", text(manifest.job),
      ",\n\"tokenizer\": ", text(manifest.tokenizer),
      ",\n\"data\": ", text(manifest.data),
      manifest.data_unchecked ? ",\n\"data_unchecked\": true" : "",
      manifest.loss_scale.scale > 0
          ? absl::StrCat(",\n\"loss_scale\": ",
                         FormatJson(LossScaleToJson(manifest.loss_scale)))
          : "",
      ",\n\"created\": \"",
      absl::FormatTime(absl::RFC3339_full, manifest.created,
                       absl::UTCTimeZone()),
      "\",\n\"tensors\": [\n", JoinLines(manifest.tensors, &TensorToJson),
      "\n],\n\"files\": [\n", JoinLines(manifest.files, &FileToJson),
      "\n],\n\"assets\": [\n", JoinLines(manifest.assets, &FileToJson),
      "\n],\n");
  const std::string crc = FormatCrc(Crc32c(out));
  absl::StrAppend(&out, kChecksumLine, " \"", crc, "\"\n}\n");
  return out;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text,
                                       absl::string_view where) {
  absl::StatusOr<Manifest> manifest = Parse(text);
  if (manifest.ok()) return manifest;
  return absl::DataLossError(
      absl::StrCat(where, ": ", manifest.status().message()));
}

absl::Status CheckManifest(const Manifest& manifest) {
  std::set<std::string> files;
  RETURN_IF_ERROR(CheckFiles(manifest.files, files));
  std::set<std::string> assets;
  RETURN_IF_ERROR(Annotate(CheckFiles(manifest.assets, assets), "assets"));
  std::set<std::string> tensors;
  std::set<std::pair<std::string, std::string>> keys;
  for (const ManifestTensor& tensor : manifest.tensors) {
    const std::string where = absl::StrCat("tensor ", tensor.name);
    if (!tensors.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is there twice"));
    }
    RETURN_IF_ERROR(Annotate(CheckShape(tensor.shape), where));
    std::vector<TensorBox> boxes;
    for (const ManifestShard& shard : tensor.shards) {
      if (files.count(shard.file) == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": file ", shard.file, " is not among the files"));
      }
      if (!keys.insert({shard.file, shard.key}).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": ", shard.key, " of ", shard.file, " is used twice"));
      }
      boxes.push_back(shard.box);
    }
    RETURN_IF_ERROR(Annotate(CheckTiling(boxes, tensor.shape), where));
  }
  return absl::OkStatus();
}

std::string MadeText(const Manifest& manifest) {
  return absl::StrCat(manifest.job_name, ", step ", manifest.step, ", plan ",
                      manifest.plan_fingerprint, ", ",
                      absl::FormatTime(manifest.created, absl::UTCTimeZone()));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(path, kManifestBytesMax));
  return ParseManifest(text, path);
}

}  // namespace troupe
