#include "storage/checkpoint/check_hugging_face.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/checkpoint/tensor_box.h"

namespace troupe {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

// Masks and tables that the code makes.
bool IsNoParameter(absl::string_view name) {
  constexpr absl::string_view kEndings[] = {
      ".attn.bias", ".attn.masked_bias", ".attention.bias",
      ".attention.masked_bias", ".rotary_emb.inv_freq"};
  return std::any_of(
      std::begin(kEndings), std::end(kEndings),
      [&](absl::string_view ending) { return absl::EndsWith(name, ending); });
}

bool IsLeftOut(absl::string_view name, const HuggingFaceContents& contents) {
  int layer = 0;
  if (!contents.layers_behind.has_value() ||
      !absl::ConsumePrefix(&name, "model.layers.")) {
    return false;
  }
  const size_t end = name.find('.');
  return end != absl::string_view::npos &&
         absl::SimpleAtoi(name.substr(0, end), &layer) &&
         layer >= *contents.layers_behind;
}

bool IsProjection(absl::string_view name) {
  const auto names = HuggingFaceWeights::ProjectionNames();
  return std::count(names.begin(), names.end(), name) > 0;
}

// The first element in which they differ, by its bits, or -1.
absl::StatusOr<int64_t> FirstDifference(const HuggingFaceWeights& weights,
                                        const SafetensorsTensor& a,
                                        const SafetensorsTensor& b) {
  const int64_t elements = ElementCount(a.shape);
  std::vector<float> of_a, of_b;
  for (int64_t at = 0; at < elements; at += kElementsAtOnce) {
    const int64_t count = std::min(kElementsAtOnce, elements - at);
    of_a.resize(count);
    of_b.resize(count);
    RETURN_IF_ERROR(
        weights.ReadF32(a.name, {.begin = at, .count = count}, of_a.data()));
    RETURN_IF_ERROR(
        weights.ReadF32(b.name, {.begin = at, .count = count}, of_b.data()));
    if (memcmp(of_a.data(), of_b.data(), count * sizeof(float)) == 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (memcmp(&of_a[i], &of_b[i], sizeof(float)) != 0) return at + i;
    }
  }
  return -1;
}

absl::Status CheckTied(const HuggingFaceWeights& weights,
                       const SafetensorsTensor& table,
                       const SafetensorsTensor& projection) {
  const std::string both =
      absl::StrCat(weights.directory(),
                   ": config.json ties the output projection to the token "
                   "table (tie_word_embeddings), but tensor ",
                   projection.name, " differs from ", table.name);
  const absl::string_view advice =
      "; set tie_word_embeddings to false to have a projection of its own, or "
      "remove the tensor to have the table (transformers 4 uses the table, "
      "transformers 5 the tensor)";
  if (projection.shape != table.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        both, ": [", absl::StrJoin(projection.shape, ", "), "] beside [",
        absl::StrJoin(table.shape, ", "), "]", advice));
  }
  ASSIGN_OR_RETURN(const int64_t at,
                   FirstDifference(weights, table, projection));
  if (at < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(both, ", from element ", at, " on", advice));
}

absl::Status CheckAllTied(const HuggingFaceWeights& weights) {
  for (const std::string& name : weights.tied()) {
    const SafetensorsTensor* table = weights.Find(name);
    for (const SafetensorsTensor* stored : weights.tensors()) {
      if (stored == table || !IsProjection(stored->name)) continue;
      RETURN_IF_ERROR(CheckTied(weights, *table, *stored));
    }
  }
  return absl::OkStatus();
}

// Modules that predict further tokens share the model's tables. Files have them
// once more with each module.
absl::Status CheckCopies(const HuggingFaceWeights& weights,
                         const HuggingFaceContents& contents) {
  for (const HuggingFaceParameter& parameter : contents.parameters) {
    for (const std::string& name : parameter.copies) {
      const SafetensorsTensor* const copy = weights.Find(name);
      if (copy == nullptr) continue;
      ASSIGN_OR_RETURN(
          const int64_t at,
          FirstDifference(weights, *weights.Find(parameter.name), *copy));
      if (at < 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(weights.directory(), ": tensor ", name, " differs from ",
                       parameter.name, ", from element ", at,
                       " on, and here they are one table; remove it to have ",
                       parameter.name));
    }
  }
  return absl::OkStatus();
}

// Every parameter is there in its shape, and nothing else is.
absl::Status CheckHeaders(const HuggingFaceWeights& weights,
                          const HuggingFaceContents& contents) {
  std::set<const SafetensorsTensor*> known;
  for (const HuggingFaceParameter& parameter : contents.parameters) {
    RETURN_IF_ERROR(weights.CheckShape(parameter.name, parameter.shape));
    known.insert(weights.Find(parameter.name));
    for (int64_t i = 0; !parameter.each.empty() && i < parameter.shape[0];
         ++i) {
      known.insert(weights.Find(NameOfEach(parameter.each, i)));
    }
    for (const std::string& copy : parameter.copies) {
      if (weights.Find(copy) == nullptr) continue;
      RETURN_IF_ERROR(weights.CheckShape(copy, parameter.shape));
      known.insert(weights.Find(copy));
    }
  }
  const bool tied = !weights.tied().empty();
  for (const SafetensorsTensor* stored : weights.tensors()) {
    if (known.count(stored) > 0 || IsNoParameter(stored->name) ||
        IsLeftOut(stored->name, contents) ||
        (tied && IsProjection(stored->name))) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        weights.directory(), ": tensor ", stored->name,
        " belongs to no model that its config.json describes; is it of "
        "another architecture?"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> TensorsLeftOut(const HuggingFaceWeights& weights,
                                        const HuggingFaceContents& contents) {
  std::vector<std::string> names;
  for (const SafetensorsTensor* const stored : weights.tensors()) {
    if (IsLeftOut(stored->name, contents)) names.push_back(stored->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<HuggingFaceWeights> OpenHuggingFaceWeights(
    const std::string& directory, const HuggingFaceContents& contents,
    HuggingFaceCheck check) {
  ASSIGN_OR_RETURN(HuggingFaceWeights weights,
                   HuggingFaceWeights::Open(directory));
  for (const std::string& table : contents.tied) weights.AddTied(table);
  for (const HuggingFaceParameter& parameter : contents.parameters) {
    if (parameter.part.has_value()) {
      weights.AddPart(parameter.name, *parameter.part);
    }
    if (!parameter.each.empty()) {
      weights.AddStack(parameter.name, parameter.each, parameter.shape[0]);
    }
  }
  RETURN_IF_ERROR(CheckHeaders(weights, contents));
  if (check == HuggingFaceCheck::kTables) {
    RETURN_IF_ERROR(CheckAllTied(weights));
    RETURN_IF_ERROR(CheckCopies(weights, contents));
  }
  return weights;
}

}  // namespace troupe
