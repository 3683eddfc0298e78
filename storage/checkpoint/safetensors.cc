#include "storage/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/checkpoint/tensor_box.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr uint64_t kLengthBytes = 8;

uint64_t TensorBytes(const SafetensorsTensor& tensor) {
  return static_cast<uint64_t>(ElementCount(tensor.shape) *
                               StoredDTypeBytes(tensor.dtype));
}

absl::StatusOr<SafetensorsTensor> ParseTensor(const std::string& name,
                                              const json& entry) {
  SafetensorsTensor tensor;
  tensor.name = name;
  ASSIGN_OR_RETURN(const std::string dtype, StringField(entry, "dtype"));
  ASSIGN_OR_RETURN(tensor.dtype, ParseStoredDType(dtype));
  ASSIGN_OR_RETURN(tensor.shape, IntsField(entry, "shape"));
  RETURN_IF_ERROR(CheckShape(tensor.shape));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                   IntsField(entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[1] < offsets[0]) {
    return absl::InvalidArgumentError(
        "\"data_offsets\" must be [begin, end] with begin <= end");
  }
  tensor.begin = static_cast<uint64_t>(offsets[0]);
  tensor.end = static_cast<uint64_t>(offsets[1]);
  if (tensor.end - tensor.begin != TensorBytes(tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets [", tensor.begin, ", ", tensor.end,
                     "] hold ", tensor.end - tensor.begin,
                     " bytes, but dtype and shape need ", TensorBytes(tensor)));
  }
  return tensor;
}

absl::StatusOr<SafetensorsMetadata> ParseMetadata(const json& entry) {
  if (!entry.is_object()) {
    return absl::InvalidArgumentError("must be an object");
  }
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", key, "\" must be a string"));
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Sorts by offset; the tensors must then fill the data exactly.
absl::Status CheckFilled(SafetensorsHeader& header) {
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const auto& a, const auto& b) {
                     return std::pair(a.begin, a.end) <
                            std::pair(b.begin, b.end);
                   });
  uint64_t at = 0;
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (tensor.begin != at) {
      return absl::DataLossError(absl::StrCat(
          "tensor \"", tensor.name, "\" begins at offset ",
          header.data_offset + tensor.begin,
          tensor.begin < at ? ", inside the tensor before it, which ends at "
                            : ", leaving a hole after offset ",
          header.data_offset + at));
    }
    at = tensor.end;
    if (at > header.file_bytes - header.data_offset) {
      return absl::DataLossError(
          absl::StrCat("tensor \"", tensor.name, "\" ends at offset ",
                       header.data_offset + at, ", but the file ends at ",
                       header.file_bytes, ": it is truncated"));
    }
  }
  if (header.data_offset + at != header.file_bytes) {
    return absl::DataLossError(
        absl::StrCat("the tensors end at offset ", header.data_offset + at,
                     ", but the file goes on to ", header.file_bytes));
  }
  return absl::OkStatus();
}

std::string FormatJsonHeader(const SafetensorsHeader& header) {
  json root = json::object();
  if (!header.metadata.empty()) root[kMetadataKey] = header.metadata;
  for (const SafetensorsTensor& tensor : header.tensors) {
    root[tensor.name] = {{"dtype", StoredDTypeName(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = FormatJson(root);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> LayOutSafetensors(
    std::vector<SafetensorsTensor> tensors, SafetensorsMetadata metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(-StoredDTypeBytes(a.dtype), a.name) <
           std::pair(-StoredDTypeBytes(b.dtype), b.name);
  });
  std::vector<absl::string_view> names;
  uint64_t at = 0;
  for (SafetensorsTensor& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == kMetadataKey) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", tensor.name, "\" cannot be a safetensors name"));
    }
    RETURN_IF_ERROR(Annotate(CheckShape(tensor.shape), tensor.name));
    tensor.begin = at;
    at += TensorBytes(tensor);
    tensor.end = at;
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor \"", *twice, "\" is there twice"));
  }
  SafetensorsHeader header{std::move(tensors), std::move(metadata), 0, 0};
  header.data_offset = kLengthBytes + FormatJsonHeader(header).size();
  header.file_bytes = header.data_offset + at;
  return header;
}

std::string FormatSafetensorsHeader(const SafetensorsHeader& header) {
  const std::string text = FormatJsonHeader(header);
  CHECK_EQ(kLengthBytes + text.size(), header.data_offset);
  std::string bytes(kLengthBytes, '\0');
  StoreLittleEndian<uint64_t>(text.size(), bytes.data());
  return bytes + text;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    const ParseSafetensorsArgs& args) {
  const auto malformed = [&args](const absl::Status& status,
                                 absl::string_view what) {
    return absl::DataLossError(absl::StrCat(args.path, ": offset ",
                                            kLengthBytes, " (header): ", what,
                                            status.message()));
  };
  SafetensorsHeader header;
  header.data_offset = kLengthBytes + args.json.size();
  header.file_bytes = args.file_bytes;
  CHECK_LE(header.data_offset, header.file_bytes);
  const absl::StatusOr<json> root = ParseJsonObject(args.json);
  if (!root.ok()) return malformed(root.status(), "");
  for (const auto& [name, entry] : root->items()) {
    const std::string what = absl::StrCat("\"", name, "\": ");
    if (name == kMetadataKey) {
      absl::StatusOr<SafetensorsMetadata> metadata = ParseMetadata(entry);
      if (!metadata.ok()) return malformed(metadata.status(), what);
      header.metadata = *std::move(metadata);
      continue;
    }
    absl::StatusOr<SafetensorsTensor> tensor = ParseTensor(name, entry);
    if (!tensor.ok()) return malformed(tensor.status(), what);
    header.tensors.push_back(*std::move(tensor));
  }
  RETURN_IF_ERROR(Annotate(CheckFilled(header), args.path));
  return header;
}

}  // namespace troupe
