// Writes the ops of one unit of a model graph into a UnitBuilder, each checked
// against what it reads. A part of GraphUnits.
#ifndef TROUPE_PROTO_PLAN_GRAPH_OP_WRITER_H_
#define TROUPE_PROTO_PLAN_GRAPH_OP_WRITER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/graph/expand_graph.h"
#include "proto/plan/graph/graph_text.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

inline constexpr size_t kGraphNameMax = 256;  // bytes
// Columns of any tensor, and of any parameter's two dims; and their sections.
inline constexpr int64_t kGraphColumnsMax = 16 * int64_t{kModelWidthMax};
inline constexpr int kGraphSectionsMax = 16;
// Of the table of an embed; and the largest vocabulary.
inline constexpr int64_t kGraphRowsMax = 1 << 24;

// For messages: a name in quotes, and columns as "HEADS 12 x 64 | ...".
std::string Quoted(absl::string_view name);
std::string DimText(const Dim& dim);

// What units of a graph have in common.
struct GraphNames {
  struct Embedding {
    int unit = 0;
    int64_t rows = 0;
  };
  std::set<std::string> parameters;
  std::map<std::string, Embedding> embeddings;  // by table
  BatchSchema batch;
  std::set<std::string> batch_read;  // of these
  int losses = 0;
};

class OpWriter {
 public:
  // Borrows all. `index` of the unit in the model.
  OpWriter(const GraphText& text, const ExpandedUnit& unit, int index,
           GraphNames& names, UnitBuilder& builder)
      : text_(text),
        unit_(unit),
        index_(index),
        names_(names),
        builder_(builder) {}

  // What another unit makes, under the text that ops read it by.
  void AddInput(const std::string& read, int tensor) {
    tensors_[read] = tensor;
  }

  // All ops, in order. Errors as GraphUnits.
  absl::Status Run();

  // The tensor of this name, for another unit to read.
  absl::StatusOr<int> Export(const GraphExport& wanted);

  // After the exports: every tensor is read.
  absl::Status CheckRead() const;

 private:
  struct Made {
    int tensor = -1;
    int line = 0;
    std::string op;  // in words
  };

  absl::Status Write(const GraphOp& op);
  absl::Status WriteEmbed(const GraphOp::Embed& op);
  absl::Status WriteDropout(const GraphOp::Dropout& op);
  absl::Status WriteNorm(const GraphOp::Norm& op);
  absl::Status WriteLinear(const GraphOp::Linear& op);
  absl::Status WriteRope(const GraphOp::Rope& op);
  absl::Status WriteHeadNorm(const GraphOp::HeadNorm& op);
  absl::Status WriteAttention(const GraphOp::Attention& op);
  absl::Status WriteGelu(const GraphOp::Gelu& op);
  absl::Status WriteSwiGlu(const GraphOp::SwiGlu& op);
  absl::Status WriteAdd(const GraphOp::Add& op);
  absl::Status WriteLoss(const GraphOp::Loss& op);

  // At the op that is written.
  absl::Status Error(absl::string_view what) const;
  absl::StatusOr<int> Read(const std::string& name);
  // A tensor of the batch, "batch:NAME", or where that is empty the one of this
  // name.
  struct OfBatch {
    const BatchTensor* tensor = nullptr;
    BatchElements elements = BatchElements::kNumbers;
  };
  absl::StatusOr<OfBatch> ReadBatch(const std::string& text,
                                    absl::string_view otherwise);
  absl::Status Make(const std::string& name, int tensor);
  absl::Status CheckEpsilon(double epsilon) const;
  absl::Status CheckInit(double init_std) const;
  // Adds the names to those of the model, `suffixes` appended to each.
  absl::Status NameParameters(const std::vector<std::string>& names,
                              const std::vector<const char*>& suffixes);
  absl::StatusOr<Rope> TurnOf(const GraphOp::Rope::Turn& turn,
                              int64_t head_columns) const;
  absl::StatusOr<Dim> ColumnsOf(
      const google::protobuf::RepeatedPtrField<GraphColumns>& columns) const;

  const Dim& Columns(int tensor) const;
  bool IsHidden(int tensor) const;
  // Queries, keys and values, of one width.
  absl::Status CheckHeads(const std::string& name, int tensor) const;

  const GraphText& text_;
  const ExpandedUnit& unit_;
  const int index_;
  GraphNames& names_;
  UnitBuilder& builder_;
  std::map<std::string, int> tensors_;  // by name
  std::map<std::string, Made> made_;    // by name
  std::map<int, int> reads_;            // by tensor
  std::set<std::string> read_names_;
  std::set<std::string> batch_read_;
  std::map<int, int> turned_;  // of ropes: tensor, and the op's number
  size_t at_ = 0;              // op
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_OP_WRITER_H_
