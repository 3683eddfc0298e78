#include "storage/checkpoint/tensor_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/checkpoint/check_file.h"
#include "storage/checkpoint/checkpoint_dir.h"

namespace troupe {
namespace {

// A shard is read in runs of whole rows of at most this, then what is asked for
// is picked from memory: a column slice costs few large reads instead of many
// small.
constexpr int64_t kRunBytesMax = int64_t{4} << 20;

// One shard's tensor in its open file.
struct OpenShard {
  const SafetensorsReader& file;
  const SafetensorsTensor& tensor;
  const TensorBox& box;
  int64_t element_bytes;
};

// Where `region` of the shard goes.
struct Destination {
  const TensorBox& box;
  char* data;
};

// The elements of the shard from the first to the last of `region` in dim
// `dim`, whole in the dims after it: contiguous in the file where the region is
// one wide in the dims before it.
TensorBox Cover(const OpenShard& shard, TensorBox region, size_t dim) {
  for (size_t d = dim + 1; d < region.start.size(); ++d) {
    region.start[d] = shard.box.start[d];
    region.shape[d] = shard.box.shape[d];
  }
  return region;
}

absl::Status ReadRun(const OpenShard& shard, const TensorBox& region,
                     size_t dim, const Destination& to,
                     std::vector<char>& buffer) {
  const TensorBox cover = Cover(shard, region, dim);
  uint64_t first = 0;
  for (size_t d = 0; d < cover.start.size(); ++d) {
    first = first * shard.box.shape[d] + (cover.start[d] - shard.box.start[d]);
  }
  buffer.resize(ElementCount(cover.shape) * shard.element_bytes);
  RETURN_IF_ERROR(shard.file.Read(
      shard.tensor,
      {.offset = first * shard.element_bytes, .bytes = buffer.size()},
      buffer.data()));
  CopyBox({.region = region,
           .from_box = cover,
           .from = buffer.data(),
           .to_box = to.box,
           .to = to.data,
           .element_bytes = shard.element_bytes});
  return absl::OkStatus();
}

// Reads a region that is one wide in the dims before `dim`.
absl::Status ReadRegion(const OpenShard& shard, const TensorBox& region,
                        size_t dim, const Destination& to,
                        std::vector<char>& buffer) {
  if (region.start.empty()) return ReadRun(shard, region, 0, to, buffer);
  TensorBox slice = region;
  slice.shape[dim] = 1;
  const int64_t slice_bytes =
      ElementCount(Cover(shard, slice, dim).shape) * shard.element_bytes;
  const bool fits = slice_bytes <= kRunBytesMax;
  const int64_t step = fits ? kRunBytesMax / slice_bytes : 1;
  const int64_t end = region.start[dim] + region.shape[dim];
  for (int64_t at = region.start[dim]; at < end; at += step) {
    slice.start[dim] = at;
    slice.shape[dim] = std::min(step, end - at);
    RETURN_IF_ERROR(fits ? ReadRun(shard, slice, dim, to, buffer)
                         : ReadRegion(shard, slice, dim + 1, to, buffer));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> TensorReader::Open(
    const std::string& path) {
  ASSIGN_OR_RETURN(Manifest manifest, ReadCheckpoint(path));
  return std::unique_ptr<TensorReader>(
      new TensorReader(path, std::move(manifest)));
}

TensorReader::TensorReader(std::string path, Manifest manifest)
    : path_(std::move(path)), manifest_(std::move(manifest)) {
  for (const ManifestTensor& tensor : manifest_.tensors) {
    tensors_.emplace(tensor.name, &tensor);
  }
  for (const ManifestFile& file : manifest_.files) {
    files_.emplace(file.name, &file);
  }
}

const ManifestTensor* TensorReader::Find(absl::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : it->second;
}

absl::StatusOr<const ManifestTensor*> TensorReader::FindTyped(
    absl::string_view name, StoredDType dtype) const {
  const ManifestTensor* tensor = Find(name);
  if (tensor == nullptr) {
    return absl::NotFoundError(absl::StrCat(path_, ": has no tensor ", name));
  }
  if (tensor->dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": tensor ", name, " is ", StoredDTypeName(tensor->dtype),
        ", asked for as ", StoredDTypeName(dtype)));
  }
  return tensor;
}

absl::Status TensorReader::Read(absl::string_view name, StoredDType dtype,
                                const TensorBox& box, void* out) const {
  ASSIGN_OR_RETURN(const ManifestTensor* const tensor, FindTyped(name, dtype));
  RETURN_IF_ERROR(Annotate(CheckInside(box, tensor->shape),
                           absl::StrCat(path_, ": tensor ", name)));
  for (const ManifestShard& shard : tensor->shards) {
    RETURN_IF_ERROR(ReadShard(*tensor, shard, box, static_cast<char*>(out)));
  }
  return absl::OkStatus();
}

absl::Status TensorReader::ReadRange(absl::string_view name, StoredDType dtype,
                                     const FlatRange& range, void* out) const {
  ASSIGN_OR_RETURN(const ManifestTensor* const tensor, FindTyped(name, dtype));
  const int64_t count = ElementCount(tensor->shape);
  if (range.begin < 0 || range.count < 0 || range.begin > count ||
      range.count > count - range.begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": tensor ", name, " has ", count, " elements, asked for ",
        range.count, " from ", range.begin));
  }
  char* to = static_cast<char*>(out);
  for (const TensorBox& box : BoxesOfRange(tensor->shape, range)) {
    RETURN_IF_ERROR(Read(name, dtype, box, to));
    to += ElementCount(box.shape) * StoredDTypeBytes(dtype);
  }
  return absl::OkStatus();
}

absl::StatusOr<const SafetensorsReader*> TensorReader::File(
    const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto it = open_.find(name);
  if (it != open_.end()) return it->second.get();
  ASSIGN_OR_RETURN(SafetensorsReader file,
                   SafetensorsReader::Open(absl::StrCat(path_, "/", name)));
  RETURN_IF_ERROR(
      CheckFile(file.path(), *files_.at(name), CheckDepth::kChecksums));
  auto owned = std::make_unique<SafetensorsReader>(std::move(file));
  return open_.emplace(name, std::move(owned)).first->second.get();
}

absl::Status TensorReader::ReadShard(const ManifestTensor& tensor,
                                     const ManifestShard& shard,
                                     const TensorBox& box, char* out) const {
  const absl::optional<TensorBox> region = Intersect(shard.box, box);
  if (!region.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SafetensorsReader* const file, File(shard.file));
  const SafetensorsTensor* stored = file->Find(shard.key);
  if (stored == nullptr || stored->dtype != tensor.dtype ||
      stored->shape != shard.box.shape) {
    return absl::DataLossError(absl::StrCat(
        file->path(), ": does not hold ", shard.key, " as ",
        StoredDTypeName(tensor.dtype), " of shape [",
        absl::StrJoin(shard.box.shape, ", "), "], as the manifest says"));
  }
  const OpenShard open{*file, *stored, shard.box,
                       StoredDTypeBytes(tensor.dtype)};
  std::vector<char> buffer;
  return ReadRegion(open, *region, 0, {box, out}, buffer);
}

}  // namespace troupe
