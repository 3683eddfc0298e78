#include "storage/checkpoint/load_tensors.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/check_file.h"
#include "storage/checkpoint/check_numbers.h"
#include "storage/checkpoint/safetensors_reader.h"

namespace troupe {
namespace {

// In flight: enough for a disk's queue, and for the kernel to read ahead.
constexpr int kBuffers = 8;

absl::StatusOr<SafetensorsReader> OpenListed(const std::string& path,
                                             const ManifestFile& listed) {
  RETURN_IF_ERROR(CheckFile(path, listed, CheckDepth::kSizes));
  return SafetensorsReader::Open(path);
}

uint64_t BlockBytes(const ManifestFile& file, uint64_t block) {
  return std::min(kBlockBytes, file.bytes - block * kBlockBytes);
}

// Appends the blocks of bytes [begin, end), without repeating the last one.
void AddBlocks(uint64_t begin, uint64_t end, std::vector<uint64_t>& blocks) {
  if (begin == end) return;
  uint64_t block = begin / kBlockBytes;
  if (!blocks.empty() && blocks.back() == block) ++block;
  for (; block * kBlockBytes < end; ++block) blocks.push_back(block);
}

// What is wanted of a shard: its own box, or what boxes share with it.
std::vector<TensorBox> WantedOf(const TensorToLoad& tensor,
                                const TensorBox& shard) {
  if (tensor.boxes.empty()) return {shard};
  std::vector<TensorBox> both;
  for (const TensorBox& box : tensor.boxes) {
    if (auto shared = Intersect(box, shard)) both.push_back(*shared);
  }
  return both;
}

}  // namespace

absl::StatusOr<CheckpointLoad> CheckpointLoad::Of(
    const CheckpointToLoad& checkpoint,
    const std::vector<TensorToLoad>& tensors) {
  const Manifest& manifest = checkpoint.manifest;
  absl::flat_hash_map<std::string, const ManifestTensor*> stored;
  for (const ManifestTensor& tensor : manifest.tensors) {
    stored[tensor.name] = &tensor;
  }
  CheckpointLoad load;
  load.tensors_ = tensors;
  std::map<std::string, std::vector<Wanted>> by_file;
  for (const TensorToLoad& tensor : load.tensors_) {
    const auto it = stored.find(tensor.name);
    if (it == stored.end()) {
      return absl::NotFoundError(
          absl::StrCat(checkpoint.path, ": has no tensor ", tensor.name));
    }
    if (it->second->dtype != tensor.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": tensor ", tensor.name, " is ",
                       StoredDTypeName(it->second->dtype), ", asked for as ",
                       StoredDTypeName(tensor.dtype)));
    }
    if (it->second->shape != tensor.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          checkpoint.path, ": tensor ", tensor.name, " is [",
          absl::StrJoin(it->second->shape, ", "), "] there, asked for as [",
          absl::StrJoin(tensor.shape, ", "),
          "]: it is of another model than this"));
    }
    for (const ManifestShard& shard : it->second->shards) {
      std::vector<TensorBox> boxes = WantedOf(tensor, shard.box);
      if (boxes.empty()) continue;
      by_file[shard.file].push_back(
          {&tensor, it->second, &shard, std::move(boxes)});
    }
  }
  for (const ManifestFile& listed : manifest.files) {
    const auto wanted = by_file.find(listed.name);
    if (wanted == by_file.end()) continue;
    ASSIGN_OR_RETURN(File file,
                     FileWith(absl::StrCat(checkpoint.path, "/", listed.name),
                              listed, wanted->second));
    load.files_.push_back(std::move(file));
  }
  return load;
}

absl::StatusOr<CheckpointLoad::File> CheckpointLoad::FileWith(
    const std::string& path, const ManifestFile& listed,
    const std::vector<Wanted>& wanted) {
  File file = {.path = path, .listed = &listed};
  ASSIGN_OR_RETURN(const SafetensorsReader reader, OpenListed(path, listed));
  const SafetensorsHeader& header = reader.header();
  // The header is checked with the rest: it says where tensors lie.
  AddBlocks(0, header.data_offset, file.blocks);
  for (const auto& [tensor, whole, shard, boxes] : wanted) {
    const SafetensorsTensor* found = reader.Find(shard->key);
    if (found == nullptr || found->dtype != tensor->dtype ||
        found->shape != shard->box.shape) {
      return absl::DataLossError(absl::StrCat(
          path, ": does not hold ", shard->key, " as ",
          StoredDTypeName(tensor->dtype), " of shape [",
          absl::StrJoin(shard->box.shape, ", "), "], as the manifest says"));
    }
    const uint64_t begin = header.data_offset + found->begin;
    const uint64_t element_bytes = StoredDTypeBytes(tensor->dtype);
    for (const TensorBox& box : boxes) {
      for (const FlatRange& range : RangesOfBox(box, shard->box)) {
        const uint64_t first = begin + range.begin * element_bytes;
        AddBlocks(first, first + range.count * element_bytes, file.blocks);
      }
    }
    file.shards.push_back({.tensor = tensor,
                           .begin = begin,
                           .end = header.data_offset + found->end,
                           .box = shard->box,
                           .shape = whole->shape});
  }
  std::sort(file.shards.begin(), file.shards.end(),
            [](const Shard& a, const Shard& b) { return a.begin < b.begin; });
  if (listed.blocks.empty()) {
    // Can be checked as a whole only.
    file.blocks.clear();
    AddBlocks(0, listed.bytes, file.blocks);
  }
  std::sort(file.blocks.begin(), file.blocks.end());
  file.blocks.erase(std::unique(file.blocks.begin(), file.blocks.end()),
                    file.blocks.end());
  return file;
}

uint64_t CheckpointLoad::bytes() const {
  uint64_t bytes = 0;
  for (const File& file : files_) {
    for (const uint64_t block : file.blocks) {
      bytes += BlockBytes(*file.listed, block);
    }
  }
  return bytes;
}

// The elements of a box lie in the tensor in runs: those of its last dims that
// are whole, times its width in the dim before them.
absl::Status CheckpointLoad::Take(const File& file, const Shard& shard,
                                  uint64_t from, absl::string_view bytes) {
  const std::vector<int64_t>& box = shard.box.shape;
  uint64_t run_bytes = StoredDTypeBytes(shard.tensor->dtype);
  size_t outer = box.size();  // dims before those of a run
  while (outer > 0) {
    --outer;
    run_bytes *= box[outer];
    if (box[outer] != shard.shape[outer]) break;
  }
  while (!bytes.empty()) {
    uint64_t run = from / run_bytes;
    const uint64_t within = from % run_bytes;
    uint64_t offset = 0;  // of the run's first element in the tensor
    uint64_t stride = StoredDTypeBytes(shard.tensor->dtype);
    for (size_t dim = box.size(); dim-- > 0;) {
      uint64_t index = shard.box.start[dim];
      if (dim < outer) {
        index += run % box[dim];
        run /= box[dim];
      }
      offset += index * stride;
      stride *= shard.shape[dim];
    }
    const absl::string_view piece = bytes.substr(0, run_bytes - within);
    if (shard.tensor->dtype == StoredDType::kF32) {
      constexpr uint64_t kBytes = sizeof(float);
      RETURN_IF_ERROR(CheckNumbers(
          {.path = file.path,
           .tensor = shard.tensor->name,
           .shape = shard.shape,
           .first = static_cast<int64_t>((offset + within) / kBytes),
           .count = static_cast<int64_t>(piece.size() / kBytes),
           .data = piece.data()}));
    }
    RETURN_IF_ERROR(shard.tensor->take(offset + within, piece));
    bytes.remove_prefix(piece.size());
    from += piece.size();
  }
  return absl::OkStatus();
}

// One run of a load: keeps buffers in flight, and files open while blocks of
// theirs are. Blocks are checked and handed out in the order in which they were
// asked for, a file's header before what it says of the rest.
class CheckpointLoad::Reading {
 public:
  Reading(const std::vector<File>& files, IoEngine& engine,
          const OnBytesMoved& moved)
      : engine_(engine), moved_(moved) {
    CHECK_EQ(engine.in_flight(), 0);
    for (const File& file : files) {
      for (const uint64_t block : file.blocks) {
        todo_.push_back({.file = &file, .block = block});
      }
    }
    for (int i = 0; i < std::min(kBuffers, engine.depth()); ++i) {
      buffers_.emplace_back(kBlockBytes, '\0');
      free_.push_back(i);
    }
    blocks_.resize(buffers_.size());
  }

  ~Reading() {
    while (engine_.in_flight() > 0) engine_.Poll(absl::InfiniteDuration());
    for (const auto& [file, io] : open_) engine_.Close(io).IgnoreError();
  }

  absl::Status Run() {
    while (!todo_.empty() || engine_.in_flight() > 0) {
      while (!todo_.empty() && !free_.empty()) RETURN_IF_ERROR(Submit());
      for (const IoCompletion& done : engine_.Poll(absl::InfiniteDuration())) {
        RETURN_IF_ERROR(Complete(done));
      }
      while (!submitted_.empty() && blocks_[submitted_.front()].is_there) {
        RETURN_IF_ERROR(Use(submitted_.front()));
        submitted_.pop_front();
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Block {
    const File* file = nullptr;
    uint64_t block = 0;
    bool is_there = false;  // it was read
    uint64_t begin() const { return block * kBlockBytes; }
    uint64_t bytes() const { return BlockBytes(*file->listed, block); }
  };

  absl::StatusOr<IoFile> Open(const File& file) {
    const auto it = open_.find(&file);
    if (it != open_.end()) return it->second;
    ASSIGN_OR_RETURN(const IoFile io,
                     engine_.Open(file.path, IoMode::kReadCached));
    return open_[&file] = io;
  }

  absl::Status Submit() {
    const Block block = todo_.front();
    ASSIGN_OR_RETURN(const IoFile io, Open(*block.file));
    const int buffer = free_.back();
    RETURN_IF_ERROR(engine_.Submit({.kind = IoKind::kRead,
                                    .file = io,
                                    .offset = block.begin(),
                                    .data = buffers_[buffer].data(),
                                    .bytes = block.bytes(),
                                    .tag = static_cast<uint64_t>(buffer)}));
    free_.pop_back();
    todo_.pop_front();
    blocks_[buffer] = block;
    submitted_.push_back(buffer);
    return absl::OkStatus();
  }

  absl::Status Complete(const IoCompletion& done) {
    Block& block = blocks_[done.tag];
    if (absl::IsOutOfRange(done.status)) {
      return absl::DataLossError(
          absl::StrCat(done.status.message(), ": it became shorter meanwhile"));
    }
    RETURN_IF_ERROR(done.status);
    block.is_there = true;
    return moved_ ? moved_(block.bytes()) : absl::OkStatus();
  }

  absl::Status Use(int buffer) {
    const Block& block = blocks_[buffer];
    const absl::string_view bytes(buffers_[buffer].data(), block.bytes());
    RETURN_IF_ERROR(Verify(block, bytes));
    RETURN_IF_ERROR(HandOut(block, bytes));
    free_.push_back(buffer);
    if (block.block != block.file->blocks.back()) return absl::OkStatus();
    const IoFile io = open_[block.file];
    open_.erase(block.file);
    return engine_.Close(io);
  }

  // Of a file without checksums of blocks the last one tells.
  absl::Status Verify(const Block& block, absl::string_view bytes) {
    const ManifestFile& listed = *block.file->listed;
    const bool whole = listed.blocks.empty();
    if (block.block == 0) crc_ = 0;
    crc_ = whole ? ExtendCrc32c(crc_, bytes) : Crc32c(bytes);
    const uint64_t end = block.begin() + block.bytes();
    if (whole && end < listed.bytes) return absl::OkStatus();
    const uint32_t want = whole ? listed.crc32c : listed.blocks[block.block];
    if (crc_ == want) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat(
        "%s: bytes %d to %d: CRC-32C is %08x, the manifest says %08x: its "
        "content changed",
        block.file->path, whole ? 0 : block.begin(), end, crc_, want));
  }

  static absl::Status HandOut(const Block& block, absl::string_view bytes) {
    const uint64_t begin = block.begin();
    const uint64_t end = begin + bytes.size();
    const std::vector<Shard>& shards = block.file->shards;
    auto shard = std::partition_point(
        shards.begin(), shards.end(),
        [begin](const Shard& s) { return s.end <= begin; });
    for (; shard != shards.end() && shard->begin < end; ++shard) {
      const uint64_t first = std::max(begin, shard->begin);
      const uint64_t last = std::min(end, shard->end);
      RETURN_IF_ERROR(Take(*block.file, *shard, first - shard->begin,
                           bytes.substr(first - begin, last - first)));
    }
    return absl::OkStatus();
  }

  IoEngine& engine_;
  const OnBytesMoved& moved_;
  std::deque<Block> todo_;
  std::map<const File*, IoFile> open_;
  std::vector<std::string> buffers_;
  std::vector<Block> blocks_;  // by buffer
  std::deque<int> submitted_;  // buffers, of blocks that were not used yet
  std::vector<int> free_;      // buffers
  uint32_t crc_ = 0;           // of the last block, or of its file up to there
};

absl::Status CheckpointLoad::Run(IoEngine& engine, const OnBytesMoved& moved) {
  return Reading(files_, engine, moved).Run();
}

}  // namespace troupe
