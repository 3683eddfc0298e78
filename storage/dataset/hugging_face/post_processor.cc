#include "storage/dataset/hugging_face/post_processor.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/dataset/hugging_face/json_place.h"

namespace troupe {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kProcessorsDeepMax = 16;

absl::StatusOr<int32_t> IdIn(const JsonPlace& place) {
  const nlohmann::json& value = place.value();
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() <= std::numeric_limits<int32_t>::max()) {
    return value.get<int32_t>();
  }
  return place.Error("must be the id of a token");
}

// {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
absl::StatusOr<Ids> IdsOfSpecial(const JsonPlace& template_place,
                                 const std::string& name) {
  ASSIGN_OR_RETURN(const JsonPlace all, template_place.Field("special_tokens"));
  ASSIGN_OR_RETURN(const JsonPlace token, all.Field(name.c_str()));
  ASSIGN_OR_RETURN(const JsonPlace ids, token.Field("ids"));
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> elements, ids.Elements());
  Ids found;
  for (const JsonPlace& element : elements) {
    ASSIGN_OR_RETURN(found.emplace_back(), IdIn(element));
  }
  if (!found.empty()) return found;
  return ids.Error("is empty");
}

absl::StatusOr<Ids> BeforeOfTemplate(const JsonPlace& place) {
  ASSIGN_OR_RETURN(const JsonPlace single, place.Field("single"));
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> pieces, single.Elements());
  Ids before;
  for (const JsonPlace& piece : pieces) {
    RETURN_IF_ERROR(piece.CheckKeys({"SpecialToken", "Sequence"}));
    ASSIGN_OR_RETURN(const JsonPlace sequence, piece.Field("Sequence"));
    ASSIGN_OR_RETURN(const JsonPlace special, piece.Field("SpecialToken"));
    if (sequence.IsNull() == special.IsNull()) {
      return piece.Error("must be either a SpecialToken or a Sequence");
    }
    if (!sequence.IsNull()) {
      ASSIGN_OR_RETURN(const std::string id, sequence.Text("id"));
      if (id == "A") return before;
      return sequence.Error(
          absl::StrCat("is of \"", id, "\", and a single text is \"A\""));
    }
    ASSIGN_OR_RETURN(const std::string name, special.Text("id"));
    ASSIGN_OR_RETURN(const Ids ids, IdsOfSpecial(place, name));
    before.insert(before.end(), ids.begin(), ids.end());
  }
  return single.Error("has no place for the text, the Sequence \"A\"");
}

// ["[CLS]", 101]
absl::StatusOr<Ids> BeforeOfBert(const JsonPlace& place) {
  ASSIGN_OR_RETURN(const JsonPlace cls, place.Field("cls"));
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, cls.Elements());
  if (parts.size() != 2) return cls.Error("must be a token and its id");
  ASSIGN_OR_RETURN(const int32_t id, IdIn(parts[1]));
  return Ids{id};
}

absl::StatusOr<Ids> BeforeOf(const JsonPlace& place, int deep) {
  if (place.IsNull()) return Ids();
  if (deep > kProcessorsDeepMax) {
    return place.Error("has too many post-processors within each other");
  }
  ASSIGN_OR_RETURN(const std::string type, place.Type());
  if (type == "ByteLevel") return Ids();
  if (type == "TemplateProcessing") return BeforeOfTemplate(place);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return BeforeOfBert(place);
  }
  if (type != "Sequence") return place.UnknownType(type);
  ASSIGN_OR_RETURN(const JsonPlace list, place.Field("processors"));
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
  Ids before;
  for (const JsonPlace& part : parts) {
    ASSIGN_OR_RETURN(const Ids ids, BeforeOf(part, deep + 1));
    before.insert(before.begin(), ids.begin(), ids.end());  // around the text
  }
  return before;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadTokensBefore(absl::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  const JsonPlace file(json, "");
  ASSIGN_OR_RETURN(const JsonPlace processor, file.Field("post_processor"));
  return BeforeOf(processor, 0);
}

}  // namespace troupe
