#include "storage/dataset/hugging_face/pattern_field.h"

#include <string>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<Pattern> PatternField(const JsonPlace& object) {
  ASSIGN_OR_RETURN(const JsonPlace field, object.Field("pattern"));
  RETURN_IF_ERROR(field.CheckKeys({"String", "Regex"}));
  if (field.value().size() != 1) {
    return field.Error("must have either \"String\" or \"Regex\"");
  }
  const bool literal = field.value().contains("String");
  ASSIGN_OR_RETURN(const std::string text,
                   field.Text(literal ? "String" : "Regex"));
  if (literal && text.empty()) return field.Error("is an empty text");
  absl::StatusOr<Pattern> pattern =
      literal ? Pattern::Literal(text) : Pattern::Compile(text);
  if (!pattern.ok()) return Annotate(pattern.status(), field.place());
  return pattern;
}

}  // namespace troupe
