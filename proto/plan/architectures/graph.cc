// A model that its user has written down (docs/graph.md): whatever the file
// says that `model.graph` names.
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/fields.h"
#include "proto/plan/graph/graph_text.h"
#include "proto/plan/graph/graph_units.h"

namespace troupe {
namespace {

constexpr char kField[] = "model.graph";

absl::Status AtField(const absl::Status& status) {
  if (status.ok()) return status;
  return FieldError(kField, status.message());
}

absl::StatusOr<GraphText> TextOf(const ModelSpec& model) {
  if (model.graph_text().empty()) {
    return FieldError(kField,
                      "the job does not carry the file's text; submit it with "
                      "`troupe`, which reads the file, or give "
                      "model.graph_text");
  }
  absl::StatusOr<GraphText> text =
      ParseGraphText(model.graph(), model.graph_text());
  RETURN_IF_ERROR(AtField(text.status()));
  return text;
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  ASSIGN_OR_RETURN(const GraphText text, TextOf(model));
  absl::StatusOr<UnitList> units = GraphUnits(text, shape);
  RETURN_IF_ERROR(AtField(units.status()));
  return units;
}

// The sizes that others of a job look at are those of the graph.
absl::Status Check(const ModelSpec& model) {
  ASSIGN_OR_RETURN(const GraphText text, TextOf(model));
  const struct {
    const char* name;
    bool given;
    int64_t value;
    int64_t of_graph;
  } rows[] = {
      {"vocab_size", model.has_vocab_size(), model.vocab_size(),
       text.graph.vocab_size()},
      {"max_position_embeddings", model.has_max_position_embeddings(),
       model.max_position_embeddings(), text.graph.max_position_embeddings()}};
  for (const auto& row : rows) {
    if (!row.given || row.value == row.of_graph) continue;
    return FieldError(absl::StrCat("model.", row.name),
                      absl::StrCat("is ", row.value, ", and ", row.of_graph,
                                   " in the graph; leave it out"));
  }
  return absl::OkStatus();
}

absl::Status Resolve(ModelSpec& model) {
  RETURN_IF_ERROR(Check(model));
  RETURN_IF_ERROR(
      Units(model, {.sequences = 1, .sequence_length = 1}).status());
  ASSIGN_OR_RETURN(const GraphText text, TextOf(model));
  model.set_vocab_size(static_cast<int32_t>(text.graph.vocab_size()));
  model.set_max_position_embeddings(
      static_cast<int32_t>(text.graph.max_position_embeddings()));
  return absl::OkStatus();
}

absl::StatusOr<int> Count(const ModelSpec& model) {
  ASSIGN_OR_RETURN(const GraphText text, TextOf(model));
  return GraphUnitCount(text);
}

}  // namespace

Architecture Graph() {
  return {.name = "graph",
          .fields = {"graph", "graph_text"},
          .resolve = Resolve,
          .check = Check,
          .units = Units,
          .count = Count,
          .transformer = false,
          .shared = {"vocab_size", "max_position_embeddings"}};
}

}  // namespace troupe
