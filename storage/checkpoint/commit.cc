#include "storage/checkpoint/commit.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest_writer.h"
#include "storage/checkpoint/merge_shards.h"
#include "storage/checkpoint/safetensors_writer.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/new_file.h"
#include "storage/disk/path_calls.h"
#include "storage/disk/storage_error.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kFetchBytes = uint64_t{4} << 20;

NewDirectory DirectoryOf(const CheckpointAttempt& attempt) {
  CHECK(!attempt.token.empty());
  for (const char c : attempt.token) {
    CHECK(absl::ascii_isalnum(c) || c == '-') << attempt.token;
  }
  return NewDirectory(CheckpointPath(attempt.dir, attempt.step), attempt.token);
}

std::string ShardFileName(int rank) {
  return absl::StrFormat("rank-%05d.safetensors", rank);
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
    RETURN_IF_ERROR(
        Annotate(NotOfStorage(shard.fetch(offset, part)), tensor.name));
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

// Adds a piece of a tensor to the others in its file.
absl::Status AddPiece(const ManifestTensor& piece,
                      std::map<std::string, ManifestTensor>& tensors) {
  const auto [it, is_new] = tensors.emplace(piece.name, piece);
  if (is_new) return absl::OkStatus();
  ManifestTensor& whole = it->second;
  if (whole.dtype != piece.dtype || whole.shape != piece.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", piece.name,
                     ": its pieces disagree about its dtype or shape"));
  }
  whole.shards.insert(whole.shards.end(), piece.shards.begin(),
                      piece.shards.end());
  return absl::OkStatus();
}

// What was promised must lie there before it gets its name.
absl::Status CheckPresent(const std::string& dir,
                          absl::Span<const ShardReceipt> receipts) {
  for (const ShardReceipt& want : receipts) {
    const std::string path = absl::StrCat(dir, "/", want.file);
    ASSIGN_OR_RETURN(const PosixFile file,
                     PosixFile::Open(path, IoMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
    if (bytes != want.bytes) {
      return OfStorage(absl::DataLossError(absl::StrCat(
          path, ": has ", bytes, " bytes, its rank wrote ", want.bytes)));
    }
  }
  return absl::OkStatus();
}

// The manifest of the shards that lie in `dir`, and then without their
// descriptions.
absl::Status WriteManifest(const std::string& dir, Manifest manifest,
                           absl::Span<const ShardReceipt> receipts) {
  ASSIGN_OR_RETURN(ShardMerge shards, ShardMerge::Open(dir, receipts));
  manifest.data_unchecked |= shards.data_unchecked();
  RETURN_IF_ERROR(Annotate(CheckFileNames(shards.files()), dir));
  ASSIGN_OR_RETURN(NewFile file,
                   NewFile::Create(absl::StrCat(dir, "/", kManifestFile)));
  uint64_t bytes = 0;
  ManifestWriter writer([&file, &bytes](absl::string_view text) {
    RETURN_IF_ERROR(file.WriteAt(bytes, text));
    bytes += text.size();
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(writer.Begin(manifest));
  while (true) {
    ASSIGN_OR_RETURN(absl::optional<ManifestTensor> tensor, shards.Next());
    if (!tensor.has_value()) break;
    RETURN_IF_ERROR(writer.Add(*std::move(tensor)));
  }
  RETURN_IF_ERROR(writer.End(shards.files(), manifest.assets));
  RETURN_IF_ERROR(file.Commit());
  for (const ShardReceipt& receipt : receipts) {
    const std::string path = absl::StrCat(dir, "/", receipt.description);
    if (UnlinkPath(path) != 0) {
      return ErrnoStatus(errno, absl::StrCat(path, ": remove"));
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

absl::StatusOr<ShardReceipt> WriteShardFile(
    IoEngine& engine, const CheckpointAttempt& attempt,
    const ShardWriter& writer, absl::Span<const ShardToWrite> shards,
    const OnBytesMoved& moved) {
  for (const ShardToWrite& shard : shards) {
    RETURN_IF_ERROR(Annotate(CheckInside(shard.box, shard.shape), shard.name));
  }
  ShardFile written = {.data_unchecked = writer.data_unchecked};
  written.file.name = ShardFileName(writer.rank);
  const std::string directory = DirectoryOf(attempt).aside();
  const std::vector<std::string> keys = ShardKeys(shards);
  ASSIGN_OR_RETURN(
      const FileSummary summary,
      WriteShards(engine, absl::StrCat(directory, "/", written.file.name),
                  shards, keys, moved));
  written.file.bytes = summary.bytes;
  written.file.crc32c = summary.crc32c;
  written.file.blocks = summary.blocks;
  std::map<std::string, ManifestTensor> tensors;
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardToWrite& shard = shards[i];
    RETURN_IF_ERROR(AddPiece({shard.name,
                              shard.dtype,
                              shard.shape,
                              {{written.file.name, keys[i], shard.box}}},
                             tensors));
  }
  for (auto& [name, tensor] : tensors) {
    written.tensors.push_back(std::move(tensor));
  }
  return WriteDescription(directory, written);
}

absl::StatusOr<std::string> CommitCheckpoint(
    const CheckpointAttempt& attempt, Manifest manifest,
    absl::Span<const ShardReceipt> receipts,
    absl::Span<const CarriedFile> carried,
    const std::function<absl::Status()>& may_publish) {
  CHECK_EQ(manifest.step, attempt.step);
  const NewDirectory directory = DirectoryOf(attempt);
  const std::string& aside = directory.aside();
  manifest.assets = DescribeCarriedFiles(carried);
  RETURN_IF_ERROR(Annotate(CheckFileNames(manifest.assets),
                           absl::StrCat(aside, ": assets")));
  RETURN_IF_ERROR(CheckPresent(aside, receipts));
  RETURN_IF_ERROR(WriteCarriedFiles(aside, carried));
  RETURN_IF_ERROR(WriteManifest(aside, std::move(manifest), receipts));
  RETURN_IF_ERROR(SyncTree(aside));
  // What follows takes no time. Another rank may have given all of it up since:
  // then what is there now are the carried files and the manifest.
  RETURN_IF_ERROR(CheckPresent(aside, receipts));
  if (may_publish != nullptr) RETURN_IF_ERROR(may_publish());
  RETURN_IF_ERROR(directory.PublishOrReplace());
  return directory.path();
}

absl::Status AbandonCheckpoint(const CheckpointAttempt& attempt) {
  return DirectoryOf(attempt).Discard();
}

absl::Status AbandonShard(const CheckpointAttempt& attempt, int rank) {
  const std::string directory = DirectoryOf(attempt).aside();
  const std::string file = ShardFileName(rank);
  absl::Status status;
  for (const std::string& name : {file, DescriptionName(file)}) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (UnlinkPath(path) != 0 && errno != ENOENT) {
      status.Update(ErrnoStatus(errno, absl::StrCat(path, ": remove")));
    }
  }
  if (RmdirPath(directory) != 0 && errno != ENOENT && errno != ENOTEMPTY &&
      errno != EEXIST) {
    status.Update(ErrnoStatus(errno, absl::StrCat(directory, ": remove")));
  }
  return status;
}

}  // namespace troupe
