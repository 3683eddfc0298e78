#include "proto/plan/check_low_rank.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/index.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

int SectionsOf(const TensorSpec& tensor) {
  return tensor.dims(tensor.dims_size() - 1).sections_size();
}

// "y" is as "base", "masked" as "x", and "low" has their rows.
std::string ShapeFault(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const auto differs = [](const char* name, const TensorSpec& of,
                          const char* other, const TensorSpec& as) {
    return absl::StrCat(name, " is [", RowsOf(of), ", ", ColumnsOf(of),
                        "], but ", other, " is [", RowsOf(as), ", ",
                        ColumnsOf(as), "]");
  };
  const auto alike = [](const TensorSpec& a, const TensorSpec& b) {
    return RowsOf(a) == RowsOf(b) && ColumnsOf(a) == ColumnsOf(b) &&
           a.dtype() == b.dtype();
  };
  if (!alike(y, op.input("base"))) {
    return differs("y", y, "base", op.input("base"));
  }
  if (op.HasOutput("masked") && !alike(op.output("masked"), x)) {
    return differs("masked", op.output("masked"), "x", x);
  }
  if (RowsOf(y) != RowsOf(x)) return differs("y", y, "x", x);
  if (RowsOf(op.output("low")) != RowsOf(x)) {
    return differs("low", op.output("low"), "x", x);
  }
  return "";
}

// Each B adds to columns that are there, from the low columns of an A that is
// there; each A has one.
std::string ColumnsFault(const Op::LowRank& spec, int sections, int downs) {
  std::vector<bool> is_read(downs, false);
  for (int b = 0; b < spec.columns_size(); ++b) {
    const Op::LowRank::Columns& of = spec.columns(b);
    const int64_t end = int64_t{of.section()} + of.sections();
    if (of.section() < 0 || of.sections() < 1 || end > sections) {
      return absl::StrCat("weight B ", b, " is of sections ", of.section(),
                          " to ", end, " of y, which has ", sections);
    }
    if (!IsIndexIn(of.down(), downs)) {
      return absl::StrCat("weight B ", b, " belongs to weight A ", of.down(),
                          " of ", downs);
    }
    is_read[of.down()] = true;
  }
  for (int a = 0; a < downs; ++a) {
    if (!is_read[a]) {
      return absl::StrCat("no weight B belongs to weight A ", a);
    }
  }
  return "";
}

}  // namespace

std::string LowRankFault(const OpView& op) {
  const Op::LowRank& spec = op.op().low_rank();
  const int downs = SectionsOf(op.output("low"));
  if (op.op().parameters_size() != downs + spec.columns_size()) {
    return absl::StrCat("has ", op.op().parameters_size(),
                        " parameters, but low has ", downs, " sections, and ",
                        spec.columns_size(), " weights B have columns");
  }
  if (op.op().has_mask() != op.HasOutput("masked")) {
    return "has a mask without an output masked, or that without a mask";
  }
  if (!std::isfinite(spec.scale())) return "has no finite scale";
  const std::string fault = ShapeFault(op);
  if (!fault.empty()) return fault;
  return ColumnsFault(spec, SectionsOf(op.output("y")), downs);
}

}  // namespace troupe
