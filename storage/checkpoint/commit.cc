#include "storage/checkpoint/commit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest_json.h"
#include "storage/checkpoint/safetensors_writer.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/disk/directory.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/new_file.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kFetchBytes = uint64_t{4} << 20;

using nlohmann::json;

NewDirectory DirectoryOf(const CheckpointAttempt& attempt) {
  CHECK(!attempt.token.empty());
  for (const char c : attempt.token) {
    CHECK(absl::ascii_isalnum(c) || c == '-') << attempt.token;
  }
  return NewDirectory(CheckpointPath(attempt.dir, attempt.step), attempt.token);
}

// The names of the shards in their file: the tensor's, with the box where the
// file holds several pieces of it.
std::vector<std::string> ShardKeys(absl::Span<const ShardToWrite> shards) {
  std::map<std::string, int> pieces;
  for (const ShardToWrite& shard : shards) ++pieces[shard.name];
  std::vector<std::string> keys;
  for (const ShardToWrite& shard : shards) {
    keys.push_back(pieces[shard.name] == 1
                       ? shard.name
                       : absl::StrCat(shard.name, FormatBox(shard.box)));
  }
  return keys;
}

absl::Status AppendShard(const ShardToWrite& shard,
                         const SafetensorsTensor& tensor,
                         SafetensorsWriter& writer) {
  const uint64_t bytes = tensor.end - tensor.begin;
  if (shard.fetch == nullptr) {
    return writer.Append(tensor.name,
                         {static_cast<const char*>(shard.data), bytes});
  }
  std::vector<char> piece(std::min(bytes, kFetchBytes));
  for (uint64_t offset = 0; offset < bytes; offset += piece.size()) {
    const absl::Span<char> part = absl::MakeSpan(piece).first(
        std::min<uint64_t>(piece.size(), bytes - offset));
    RETURN_IF_ERROR(Annotate(shard.fetch(offset, part), tensor.name));
    RETURN_IF_ERROR(writer.Append(tensor.name, {part.data(), part.size()}));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileSummary> WriteShards(IoEngine& engine,
                                        const std::string& path,
                                        absl::Span<const ShardToWrite> shards,
                                        absl::Span<const std::string> keys,
                                        const OnBytesMoved& moved) {
  std::vector<SafetensorsTensor> tensors;
  std::map<std::string, const ShardToWrite*> by_key;
  for (size_t i = 0; i < shards.size(); ++i) {
    tensors.push_back({keys[i], shards[i].dtype, shards[i].box.shape});
    by_key[keys[i]] = &shards[i];
  }
  // "format" is what Hugging Face's loaders ask for.
  ASSIGN_OR_RETURN(const auto writer,
                   SafetensorsWriter::Create(engine, path, std::move(tensors),
                                             {{"format", "pt"}}, moved));
  for (const SafetensorsTensor& tensor : writer->header().tensors) {
    RETURN_IF_ERROR(AppendShard(*by_key[tensor.name], tensor, *writer));
  }
  return writer->Finish();
}

// Adds a tensor of one shard file to those of the others.
absl::Status Gather(const ManifestTensor& piece,
                    std::map<std::string, ManifestTensor>& tensors) {
  const auto [it, is_new] = tensors.emplace(piece.name, piece);
  if (is_new) return absl::OkStatus();
  ManifestTensor& whole = it->second;
  if (whole.dtype != piece.dtype || whole.shape != piece.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", piece.name, ": ranks disagree about its dtype or shape"));
  }
  whole.shards.insert(whole.shards.end(), piece.shards.begin(),
                      piece.shards.end());
  return absl::OkStatus();
}

// What was promised must lie there before it gets its name.
absl::Status CheckPresent(const std::string& dir, const Manifest& manifest) {
  for (const ManifestFile& want : manifest.files) {
    const std::string path = absl::StrCat(dir, "/", want.name);
    ASSIGN_OR_RETURN(const PosixFile file,
                     PosixFile::Open(path, IoMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
    if (bytes != want.bytes) {
      return absl::DataLossError(absl::StrCat(
          path, ": has ", bytes, " bytes, its rank wrote ", want.bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> BeginCheckpoint(const CheckpointAttempt& attempt) {
  const NewDirectory directory = DirectoryOf(attempt);
  RETURN_IF_ERROR(directory.Make());
  return directory.aside();
}

std::string TemporaryDirectory(const CheckpointAttempt& attempt) {
  return DirectoryOf(attempt).aside();
}

absl::StatusOr<ShardFile> WriteShardFile(IoEngine& engine,
                                         const CheckpointAttempt& attempt,
                                         int rank,
                                         absl::Span<const ShardToWrite> shards,
                                         const OnBytesMoved& moved) {
  for (const ShardToWrite& shard : shards) {
    RETURN_IF_ERROR(Annotate(CheckInside(shard.box, shard.shape), shard.name));
  }
  ShardFile written;
  written.file.name = absl::StrFormat("rank-%05d.safetensors", rank);
  const std::string path =
      absl::StrCat(DirectoryOf(attempt).aside(), "/", written.file.name);
  const std::vector<std::string> keys = ShardKeys(shards);
  ASSIGN_OR_RETURN(const FileSummary summary,
                   WriteShards(engine, path, shards, keys, moved));
  written.file.bytes = summary.bytes;
  written.file.crc32c = summary.crc32c;
  written.file.blocks = summary.blocks;
  std::map<std::string, ManifestTensor> tensors;
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardToWrite& shard = shards[i];
    RETURN_IF_ERROR(Gather({shard.name,
                            shard.dtype,
                            shard.shape,
                            {{written.file.name, keys[i], shard.box}}},
                           tensors));
  }
  for (auto& [name, tensor] : tensors) {
    written.tensors.push_back(std::move(tensor));
  }
  return written;
}

absl::StatusOr<std::string> CommitCheckpoint(
    const CheckpointAttempt& attempt, Manifest manifest,
    absl::Span<const ShardFile> shard_files,
    absl::Span<const CarriedFile> carried,
    const std::function<absl::Status()>& may_publish) {
  CHECK_EQ(manifest.step, attempt.step);
  std::map<std::string, ManifestTensor> tensors;
  manifest.files.clear();
  manifest.tensors.clear();
  manifest.assets = DescribeCarriedFiles(carried);
  for (const ShardFile& shard_file : shard_files) {
    manifest.files.push_back(shard_file.file);
    manifest.data_unchecked |= shard_file.data_unchecked;
    for (const ManifestTensor& piece : shard_file.tensors) {
      RETURN_IF_ERROR(Gather(piece, tensors));
    }
  }
  for (auto& [name, tensor] : tensors) {
    manifest.tensors.push_back(std::move(tensor));
  }
  const NewDirectory directory = DirectoryOf(attempt);
  const std::string& aside = directory.aside();
  RETURN_IF_ERROR(Annotate(CheckManifest(manifest), aside));
  RETURN_IF_ERROR(CheckPresent(aside, manifest));
  RETURN_IF_ERROR(WriteCarriedFiles(aside, carried));
  RETURN_IF_ERROR(ReplaceFile(absl::StrCat(aside, "/", kManifestFile),
                              FormatManifest(manifest)));
  RETURN_IF_ERROR(SyncTree(aside));
  // What follows takes no time. Another rank may have given all of it up since:
  // then what is there now are the carried files and the manifest.
  RETURN_IF_ERROR(CheckPresent(aside, manifest));
  if (may_publish != nullptr) RETURN_IF_ERROR(may_publish());
  RETURN_IF_ERROR(directory.PublishOrReplace());
  return directory.path();
}

absl::Status AbandonCheckpoint(const CheckpointAttempt& attempt) {
  return DirectoryOf(attempt).Discard();
}

std::string FormatShardFile(const ShardFile& file) {
  json tensors = json::array();
  for (const ManifestTensor& tensor : file.tensors) {
    tensors.push_back(TensorToJson(tensor));
  }
  return FormatJson({{"file", FileToJson(file.file)},
                     {"tensors", std::move(tensors)},
                     {"data_unchecked", file.data_unchecked}});
}

absl::StatusOr<ShardFile> ParseShardFile(absl::string_view text) {
  ASSIGN_OR_RETURN(const json root, ParseJsonObject(text));
  ShardFile parsed;
  const auto file = root.find("file");
  if (file == root.end()) {
    return absl::InvalidArgumentError("\"file\" is missing");
  }
  ASSIGN_OR_RETURN(parsed.file, FileFromJson(*file));
  ASSIGN_OR_RETURN(parsed.data_unchecked, FlagField(root, "data_unchecked"));
  ASSIGN_OR_RETURN(const json* const tensors, ArrayField(root, "tensors"));
  for (const json& entry : *tensors) {
    ASSIGN_OR_RETURN(ManifestTensor tensor, TensorFromJson(entry));
    parsed.tensors.push_back(std::move(tensor));
  }
  return parsed;
}

}  // namespace troupe
