#include "storage/checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest_json.h"
#include "storage/checkpoint/manifest_writer.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr uint64_t kManifestBytesMax = uint64_t{1} << 30;
// Of steps and samples: what is added to them stays within an int64.
constexpr uint64_t kCountMax = uint64_t{1} << 62;
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
  // All of them were taken that were objects.
  ASSIGN_OR_RETURN(const json* const tensors, ArrayField(root, "tensors"));
  for (const json& entry : *tensors) {
    RETURN_IF_ERROR(TensorFromJson(entry).status());
  }
  ASSIGN_OR_RETURN(manifest.files, ParseFiles(root, "files"));
  // Those of earlier versions have none.
  if (root.contains("assets")) {
    ASSIGN_OR_RETURN(manifest.assets, ParseFiles(root, "assets"));
  }
  return manifest;
}

absl::StatusOr<Manifest> Parse(absl::string_view text, ManifestPart part) {
  RETURN_IF_ERROR(CheckSelfChecksum(text));
  std::vector<ManifestTensor> tensors;
  ASSIGN_OR_RETURN(
      const json root,
      ParseJsonObject(text,
                      [&](absl::string_view key,
                          const json& entry) -> absl::StatusOr<bool> {
                        if (key != "tensors") return false;
                        if (part == ManifestPart::kWithoutTensors) return true;
                        ASSIGN_OR_RETURN(ManifestTensor tensor,
                                         TensorFromJson(entry));
                        tensors.push_back(std::move(tensor));
                        return true;
                      }));
  ASSIGN_OR_RETURN(Manifest manifest, ParseFields(root));
  manifest.tensors = std::move(tensors);
  RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

}  // namespace

std::string FormatManifest(const Manifest& manifest) {
  std::string text;
  ManifestWriter writer([&text](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return absl::OkStatus();
  });
  CHECK_OK(writer.Begin(manifest));
  std::vector<const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    tensors.push_back(&tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const ManifestTensor* a, const ManifestTensor* b) {
              return a->name < b->name;
            });
  for (const ManifestTensor* tensor : tensors) CHECK_OK(writer.Add(*tensor));
  CHECK_OK(writer.End(manifest.files, manifest.assets));
  return text;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text,
                                       absl::string_view where,
                                       ManifestPart part) {
  absl::StatusOr<Manifest> manifest = Parse(text, part);
  if (manifest.ok()) return manifest;
  return absl::DataLossError(
      absl::StrCat(where, ": ", manifest.status().message()));
}

absl::Status CheckFileNames(const std::vector<ManifestFile>& files) {
  std::set<std::string> names;
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

absl::Status CheckTensor(const ManifestTensor& tensor,
                         const std::set<std::string>& files) {
  const std::string where = absl::StrCat("tensor ", tensor.name);
  RETURN_IF_ERROR(Annotate(CheckShape(tensor.shape), where));
  std::vector<TensorBox> boxes;
  for (const ManifestShard& shard : tensor.shards) {
    if (files.count(shard.file) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": file ", shard.file, " is not among the files"));
    }
    boxes.push_back(shard.box);
  }
  return Annotate(CheckTiling(boxes, tensor.shape), where);
}

absl::Status CheckManifest(const Manifest& manifest) {
  RETURN_IF_ERROR(CheckFileNames(manifest.files));
  RETURN_IF_ERROR(Annotate(CheckFileNames(manifest.assets), "assets"));
  std::set<std::string> files;
  for (const ManifestFile& file : manifest.files) files.insert(file.name);
  std::set<absl::string_view> tensors;
  std::set<std::pair<absl::string_view, absl::string_view>> keys;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!tensors.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name, " is there twice"));
    }
    RETURN_IF_ERROR(CheckTensor(tensor, files));
    for (const ManifestShard& shard : tensor.shards) {
      if (keys.insert({shard.file, shard.key}).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name, ": ", shard.key, " of ",
                       shard.file, " is used twice"));
    }
  }
  return absl::OkStatus();
}

std::string MadeText(const Manifest& manifest) {
  return absl::StrCat(manifest.job_name, ", step ", manifest.step, ", plan ",
                      manifest.plan_fingerprint, ", ",
                      absl::FormatTime(manifest.created, absl::UTCTimeZone()));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      ManifestPart part) {
  const std::string path = absl::StrCat(directory, "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(path, kManifestBytesMax));
  return ParseManifest(text, path, part);
}

}  // namespace troupe
