#include "storage/dataset/hugging_face/model.h"

#include "proto/base/status.h"

namespace troupe {
namespace {

struct ModelRow {
  absl::string_view type;
  TokenModelOr (*make)(const JsonPlace& place, bool byte_level);
};

constexpr ModelRow kModels[] = {
    {"BPE", &MakeBpeModel},
    {"Unigram", &MakeUnigramModel},
    {"WordPiece", &MakeWordPieceModel},
};

}  // namespace

TokenModelOr MakeTokenModel(const JsonPlace& place, bool byte_level) {
  ASSIGN_OR_RETURN(const JsonPlace field, place.Field("type"));
  if (field.IsNull()) return place.Error("has no \"type\"");
  ASSIGN_OR_RETURN(const std::string type, place.Type());
  for (const ModelRow& row : kModels) {
    if (row.type == type) return row.make(place, byte_level);
  }
  return place.UnknownType(type);
}

}  // namespace troupe
