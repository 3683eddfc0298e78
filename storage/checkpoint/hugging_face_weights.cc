#include "storage/checkpoint/hugging_face_weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/checkpoint/check_numbers.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/checkpoint/to_f32.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr absl::string_view kSingleFile = "model.safetensors";
constexpr absl::string_view kIndexFile = "model.safetensors.index.json";
constexpr uint64_t kIndexBytesMax = uint64_t{256} << 20;
constexpr absl::string_view kModelPrefix = "transformer.";

// Whether it is there. That it cannot be seen, as where a link leads out of the
// root, is an error and no absence.
absl::StatusOr<bool> Exists(const std::string& path) {
  struct stat info;
  if (StatPath(path, &info) == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, path);
}

absl::StatusOr<std::string> ReadIndex(const std::string& path) {
  ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  if (bytes > kIndexBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", bytes, " bytes, no index is so large"));
  }
  std::string text(bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(0, bytes, text.data()));
  return text;
}

// Which file has a tensor, as the index says: "weight_map": {tensor: file}.
using WeightMap = std::map<std::string, std::string>;

absl::StatusOr<WeightMap> ReadWeightMap(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadIndex(path));
  const auto index = ParseJsonObject(text);
  if (!index.ok()) return Annotate(index.status(), path);
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object() || map->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": weight_map: is missing, or no object"));
  }
  WeightMap files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || absl::StrContains(file.get<std::string>(), "/")) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": weight_map: ", tensor, ": is no name of a file beside it"));
    }
    files[tensor] = file.get<std::string>();
  }
  return files;
}

absl::Status NoWeights(const std::string& directory) {
  ASSIGN_OR_RETURN(const bool pickled,
                   Exists(absl::StrCat(directory, "/pytorch_model.bin")));
  return absl::NotFoundError(absl::StrCat(
      directory, ": has neither ", kSingleFile, " nor ", kIndexFile,
      pickled ? "; pickled weights are not read: save them with "
                "save_pretrained, which writes safetensors"
              : ""));
}

}  // namespace

std::string NameOfEach(absl::string_view each, int64_t index) {
  return absl::StrReplaceAll(each, {{"*", absl::StrCat(index)}});
}

HuggingFaceWeights::HuggingFaceWeights(std::string directory)
    : directory_(std::move(directory)) {}

absl::StatusOr<bool> HuggingFaceWeights::AreIn(const std::string& directory) {
  for (const absl::string_view file : {kSingleFile, kIndexFile}) {
    ASSIGN_OR_RETURN(const bool there,
                     Exists(absl::StrCat(directory, "/", file)));
    if (there) return true;
  }
  return false;
}

absl::StatusOr<HuggingFaceWeights> HuggingFaceWeights::Open(
    const std::string& directory) {
  const std::string index = absl::StrCat(directory, "/", kIndexFile);
  ASSIGN_OR_RETURN(const bool has_index, Exists(index));
  ASSIGN_OR_RETURN(const bool has_single,
                   Exists(absl::StrCat(directory, "/", kSingleFile)));
  if (!has_index && !has_single) return NoWeights(directory);
  WeightMap map;
  if (has_index) {
    ASSIGN_OR_RETURN(map, ReadWeightMap(index));
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map) files.insert(file);
  if (has_single && files.insert(std::string(kSingleFile)).second &&
      has_index) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory, ": has both ", kSingleFile, " and ", kIndexFile,
        ", which names other files: two sets of weights. transformers reads ",
        kSingleFile, "; remove the one that is not meant"));
  }
  HuggingFaceWeights weights(directory);
  for (const std::string& file : files) RETURN_IF_ERROR(weights.Add(file));
  for (const auto& [tensor, file] : map) {
    const Place* place = weights.FindStored(tensor);
    const std::string path = absl::StrCat(directory, "/", file);
    if (place != nullptr && place->file->path() == path) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(index, ": weight_map: tensor ", tensor, " is not in ",
                     file, place == nullptr ? "" : " but in ",
                     place == nullptr ? "" : place->file->path(),
                     "; the index and the files are of different models, or "
                     "of different downloads of one"));
  }
  return weights;
}

absl::StatusOr<HuggingFaceWeights> HuggingFaceWeights::OpenFile(
    const std::string& directory, const std::string& file) {
  HuggingFaceWeights weights(directory);
  RETURN_IF_ERROR(weights.Add(file));
  return weights;
}

absl::Status HuggingFaceWeights::Add(const std::string& file) {
  ASSIGN_OR_RETURN(
      SafetensorsReader reader,
      SafetensorsReader::Open(absl::StrCat(directory_, "/", file)));
  files_.push_back(std::make_unique<SafetensorsReader>(std::move(reader)));
  const SafetensorsReader& added = *files_.back();
  for (const SafetensorsTensor& tensor : added.header().tensors) {
    const auto [place, is_new] =
        places_.try_emplace(tensor.name, Place{&added, &tensor});
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(added.path(), ": tensor ",
                                                   tensor.name, " is also in ",
                                                   place->second.file->path()));
  }
  return absl::OkStatus();
}

void HuggingFaceWeights::AddPart(const std::string& name,
                                 const PartOfTensor& part) {
  parts_[name] = part;
}

void HuggingFaceWeights::AddStack(const std::string& name,
                                  const std::string& each, int64_t count) {
  std::vector<std::string>& names = stacks_[name];
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(NameOfEach(each, i));
  }
}

std::vector<const SafetensorsTensor*> HuggingFaceWeights::tensors() const {
  std::vector<const SafetensorsTensor*> tensors;
  for (const auto& [name, place] : places_) tensors.push_back(place.tensor);
  return tensors;
}

void HuggingFaceWeights::AddTied(const std::string& table) {
  tied_.push_back(table);
}

absl::Span<const absl::string_view> HuggingFaceWeights::ProjectionNames() {
  static constexpr absl::string_view kNames[] = {"lm_head.weight",
                                                 "embed_out.weight"};
  return kNames;
}

const HuggingFaceWeights::Place* HuggingFaceWeights::FindStored(
    absl::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

const HuggingFaceWeights::Place* HuggingFaceWeights::FindPlace(
    absl::string_view name) const {
  const auto part = parts_.find(name);
  if (part != parts_.end()) name = part->second.tensor;
  const auto stack = stacks_.find(name);
  if (stack != stacks_.end()) name = stack->second.front();
  if (const Place* place = FindStored(name)) return place;
  const bool tied = std::count(tied_.begin(), tied_.end(), name) > 0;
  if (absl::ConsumePrefix(&name, kModelPrefix)) {
    if (const Place* place = FindStored(name)) return place;
  }
  if (!tied) return nullptr;
  for (const absl::string_view projection : ProjectionNames()) {
    if (const Place* place = FindStored(projection)) return place;
  }
  return nullptr;
}

const SafetensorsTensor* HuggingFaceWeights::Find(
    absl::string_view name) const {
  const Place* place = FindPlace(name);
  return place == nullptr ? nullptr : place->tensor;
}

absl::Status HuggingFaceWeights::CheckShape(
    absl::string_view name, const std::vector<int64_t>& of_part) const {
  const auto stack = stacks_.find(name);
  if (stack != stacks_.end()) {
    const std::vector<int64_t> of_each(of_part.begin() + 1, of_part.end());
    for (const std::string& each : stack->second) {
      RETURN_IF_ERROR(CheckShape(each, of_each));
    }
    return absl::OkStatus();
  }
  std::vector<int64_t> shape = of_part;
  const auto part = parts_.find(name);
  if (part != parts_.end()) shape[0] *= part->second.parts;
  const Place* place = FindPlace(name);
  if (place == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(directory_, ": has no tensor ", name,
                     ", which the model of its config.json needs"));
  }
  if (!ConvertsToF32(place->tensor->dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(place->file->path(), ": tensor ", name, " is ",
                     StoredDTypeName(place->tensor->dtype),
                     "; F32, BF16, F16 and F64 are read"));
  }
  if (place->tensor->shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      place->file->path(), ": tensor ", name, " is [",
      absl::StrJoin(place->tensor->shape, ", "),
      "], but config.json makes it [", absl::StrJoin(shape, ", "), "]"));
}

absl::Status HuggingFaceWeights::ReadStored(const Place& place,
                                            const FlatRange& range,
                                            float* out) const {
  const StoredDType dtype = place.tensor->dtype;
  const int64_t element_bytes = StoredDTypeBytes(dtype);
  const int64_t at_once = kBufferBytes / element_bytes;
  std::vector<char> buffer;
  for (int64_t done = 0; done < range.count;) {
    const int64_t count = std::min(at_once, range.count - done);
    buffer.resize(count * element_bytes);
    RETURN_IF_ERROR(place.file->Read(
        *place.tensor,
        {.offset = static_cast<uint64_t>((range.begin + done) * element_bytes),
         .bytes = buffer.size()},
        buffer.data()));
    RETURN_IF_ERROR(ToF32(dtype, buffer.data(), count, out + done));
    RETURN_IF_ERROR(
        CheckNumbers({.path = place.file->path(),
                      .tensor = place.tensor->name,
                      .shape = place.tensor->shape,
                      .first = range.begin + done,
                      .count = count,
                      .data = reinterpret_cast<const char*>(out + done)}));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceWeights::ReadF32(absl::string_view name,
                                         const FlatRange& range,
                                         float* out) const {
  const Place* place = FindPlace(name);
  if (place == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(directory_, ": has no tensor ", name));
  }
  const auto stack = stacks_.find(name);
  if (stack != stacks_.end()) return ReadStack(stack->second, range, out);
  const auto part = parts_.find(name);
  if (part == parts_.end()) return ReadStored(*place, range, out);
  // `run` elements at once, then as many of each other part.
  const PartOfTensor& of = part->second;
  const std::vector<int64_t>& shape = place->tensor->shape;
  const int64_t run = ElementCount(shape) / shape[0] * of.rows;
  for (int64_t done = 0; done < range.count;) {
    const int64_t at = range.begin + done;
    const int64_t count = std::min(range.count - done, run - at % run);
    const int64_t begin = (at / run * of.parts + of.index) * run + at % run;
    RETURN_IF_ERROR(
        ReadStored(*place, {.begin = begin, .count = count}, out + done));
    done += count;
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceWeights::ReadStack(
    const std::vector<std::string>& names, const FlatRange& range,
    float* out) const {
  const int64_t each = ElementCount(FindPlace(names.front())->tensor->shape);
  for (int64_t done = 0; done < range.count;) {
    const int64_t at = range.begin + done;
    const int64_t count = std::min(range.count - done, each - at % each);
    RETURN_IF_ERROR(ReadF32(names[at / each],
                            {.begin = at % each, .count = count}, out + done));
    done += count;
  }
  return absl::OkStatus();
}

}  // namespace troupe
