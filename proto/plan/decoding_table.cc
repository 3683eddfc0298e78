#include "proto/plan/decoding_table.h"

#include "proto/base/check.h"

namespace troupe {

UnitTable DecodingTable(const UnitTable& table, int64_t positions) {
  UnitTable decoding;
  *decoding.mutable_tensors() = table.tensors();
  int64_t rows = positions;
  for (const Op& op : table.ops()) {
    CHECK(!op.has_mask()) << "text is generated without dropout";
    if (op.kind() != Op::CROSS_ENTROPY) {
      *decoding.add_ops() = op;
      continue;
    }
    TensorSpec& logits = *decoding.mutable_tensors(op.inputs(0).tensor());
    logits.set_home(TensorSpec::OUTPUT);
    logits.clear_row_alignment();
    rows = 1;
  }
  for (TensorSpec& tensor : *decoding.mutable_tensors()) {
    for (Dim& dim : *tensor.mutable_dims()) {
      for (Dim::Section& section : *dim.mutable_sections()) {
        if (section.kind() == Dim::BATCH) section.set_count(1);
        if (section.kind() == Dim::SEQUENCE) section.set_count(rows);
      }
    }
  }
  return decoding;
}

}  // namespace troupe
