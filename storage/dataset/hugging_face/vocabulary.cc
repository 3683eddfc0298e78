#include "storage/dataset/hugging_face/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr int64_t kIdMax = (1 << 24) - 1;

}  // namespace

absl::Status Vocabulary::Add(std::string text, int64_t id,
                             const JsonPlace& place) {
  if (id < 0 || id > kIdMax) {
    return place.Error(absl::StrCat("id ", id, " is not within 0 to ", kIdMax));
  }
  if (Has(id)) return place.Error(absl::StrCat("id ", id, " comes twice"));
  if (id >= static_cast<int64_t>(texts_.size())) {
    texts_.resize(id + 1);
    has_.resize(id + 1);
  }
  longest_ = std::max(longest_, text.size());
  texts_[id] = text;
  has_[id] = true;
  ids_[std::move(text)] = static_cast<int32_t>(id);
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> Vocabulary::Parse(const JsonPlace& place) {
  if (!place.value().is_object()) return place.Error("must be an object");
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(place.value().size());
  // So that a small file takes little memory: published vocabularies leave few
  // ids out.
  const int64_t max = std::min<int64_t>(
      kIdMax, 2 * static_cast<int64_t>(place.value().size()) + (1 << 16));
  for (const auto& item : place.value().items()) {
    if (!item.value().is_number_integer()) {
      return place.Error(
          absl::StrCat("the id of \"", item.key(), "\" is not an integer"));
    }
    const int64_t id = item.value().is_number_unsigned() &&
                               item.value().get<uint64_t>() > kIdMax
                           ? kIdMax + 1
                           : item.value().get<int64_t>();
    if (id > max) {
      return place.Error(absl::StrCat("the id of \"", item.key(),
                                      "\" is not within 0 to ", max, ", for ",
                                      place.value().size(), " pieces"));
    }
    RETURN_IF_ERROR(vocabulary.Add(item.key(), id, place));
  }
  return vocabulary;
}

std::array<int32_t, 256> Vocabulary::BytePieces() const {
  std::array<int32_t, 256> ids;
  for (int byte = 0; byte < 256; ++byte) {
    ids[byte] = IdOf(absl::StrFormat("<0x%02X>", byte));
  }
  return ids;
}

}  // namespace troupe
