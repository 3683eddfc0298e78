#include "clients/hugging_face/import_model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/hugging_face/open_model.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "proto/plan/model.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "storage/checkpoint/commit.h"
#include "storage/checkpoint/hugging_face_files.h"
#include "storage/checkpoint/safetensors_writer.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/make_engine.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr char kShardFile[] = "rank-00000.safetensors";
constexpr int64_t kElementsRead = int64_t{1} << 20;

// Streams every tensor into one shard file.
absl::StatusOr<ShardFile> WriteWeights(const HuggingFaceWeights& weights,
                                       std::vector<SafetensorsTensor> tensors,
                                       const std::string& directory,
                                       const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> io,
                   MakeIoEngine({.log = false}));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<SafetensorsWriter> writer,
      SafetensorsWriter::Create(*io, absl::StrCat(directory, "/", kShardFile),
                                std::move(tensors), {}));
  ShardFile shard;
  const SafetensorsHeader& header = writer->header();
  const int64_t total = header.file_bytes - header.data_offset;
  int64_t written = 0;
  std::vector<float> piece;
  for (const SafetensorsTensor& tensor : header.tensors) {
    const int64_t elements = ElementCount(tensor.shape);
    for (int64_t at = 0; at < elements; at += kElementsRead) {
      piece.resize(std::min(kElementsRead, elements - at));
      const int64_t count = static_cast<int64_t>(piece.size());
      RETURN_IF_ERROR(weights.ReadF32(
          tensor.name, {.begin = at, .count = count}, piece.data()));
      RETURN_IF_ERROR(writer->Append(
          tensor.name, {reinterpret_cast<const char*>(piece.data()),
                        piece.size() * sizeof(float)}));
      written += count * static_cast<int64_t>(sizeof(float));
      if (options.progress) RETURN_IF_ERROR(options.progress(written, total));
    }
    shard.tensors.push_back(
        {.name = tensor.name,
         .dtype = tensor.dtype,
         .shape = tensor.shape,
         .shards = {{kShardFile, tensor.name, WholeTensor(tensor.shape)}}});
  }
  ASSIGN_OR_RETURN(const FileSummary summary, writer->Finish());
  shard.file = {kShardFile, summary.bytes, summary.crc32c, summary.blocks};
  return shard;
}

absl::StatusOr<std::vector<CarriedFile>> ReadCarried(const std::string& from) {
  std::vector<CarriedFile> carried;
  for (const char* name : kHuggingFaceFiles) {
    absl::StatusOr<std::string> bytes =
        ReadWholeFile(absl::StrCat(from, "/", name), kCarriedFileBytesMax);
    if (absl::IsNotFound(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    carried.push_back({name, *std::move(bytes)});
  }
  return carried;
}

absl::StatusOr<std::string> Write(const HuggingFaceModel& from,
                                  const CheckpointAttempt& attempt,
                                  const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::string directory, BeginCheckpoint(attempt));
  ASSIGN_OR_RETURN(
      const ShardFile shard,
      WriteWeights(from.weights, from.parameters, directory, options));
  ASSIGN_OR_RETURN(const ShardReceipt receipt,
                   WriteDescription(directory, shard));
  ASSIGN_OR_RETURN(const std::vector<CarriedFile> carried,
                   ReadCarried(options.from));
  Manifest manifest;
  manifest.job_name = "import";
  JobSpec job;  // of which there is only a model
  *job.mutable_model() = from.model;
  manifest.job = JobJson(job);
  manifest.created = absl::Now();
  return CommitCheckpoint(attempt, std::move(manifest), {receipt}, carried);
}

// Holds the directory that it writes in.
absl::StatusOr<std::string> WriteInFolder(const HuggingFaceModel& from,
                                          const ImportOptions& options) {
  const CheckpointAttempt attempt = {
      .dir = options.to, .step = 0, .token = absl::StrCat("import-", getpid())};
  const auto folder = CheckpointFolder::Open(
      {.directory = options.to,
       .holder = absl::StrCat("troupe import, ", ThisProcessName())});
  RETURN_IF_ERROR(folder.status());
  // One that was imported before may have been trained on, or be the only copy.
  const std::string there = CheckpointPath(options.to, 0);
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(there, error))) {
    return absl::AlreadyExistsError(absl::StrCat(
        there, ": is there already; remove it, or give another directory"));
  }
  absl::StatusOr<std::string> path = Write(from, attempt, options);
  // The space is worth more than the torn file; the first error is the one.
  if (!path.ok()) AbandonCheckpoint(attempt).IgnoreError();
  return path;
}

}  // namespace

absl::StatusOr<ImportedModel> ImportModel(const ImportOptions& options) {
  ASSIGN_OR_RETURN(
      const HuggingFaceModel from,
      OpenHuggingFaceModel(options.from, HuggingFaceCheck::kTables));
  ImportedModel imported = {.checkpoint = "", .model = from.model};
  imported.left_out = from.left_out;
  imported.parameters = ParameterCount(from.units);
  imported.bytes = imported.parameters * static_cast<int64_t>(sizeof(float));
  const MissingDirectories missing(options.to);
  absl::StatusOr<std::string> path = WriteInFolder(from, options);
  if (!path.ok()) {
    missing.RemoveEmpty();
    return path.status();
  }
  imported.checkpoint = *std::move(path);
  return imported;
}

}  // namespace troupe
