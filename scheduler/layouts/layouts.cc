#include "scheduler/layouts/layouts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/blocks.h"

namespace troupe {
namespace {

std::string MethodOf(const ParallelismSpec& parallelism,
                     const RankField& field) {
  const std::string method = field.MethodName();
  return HasField(parallelism, method) ? FieldText(parallelism, method) : "";
}

const RankField& RankFieldOf(absl::string_view name) {
  for (const RankField& field : RankFields()) {
    if (field.name == name) return field;
  }
  CHECK(false) << name << " counts no ranks";
  return RankFields().front();
}

}  // namespace

const std::vector<LayoutRow>& Layouts() {
  static const auto* const kLayouts = new std::vector<LayoutRow>{
      // In front of what others cut of a batch, the outermost of the mesh
      // first: what ranks of `batch` have is one run of samples.
      Experts(),
      Batch(),
      Tensor1D(),
      Tensor2D(),
      Tensor25D(),
      Tensor3D(),
      // Attention becomes parts last.
      Ulysses(),
      RingAttention(),
      RingSelfAttention(),
      UlyssesInRings(),
  };
  return *kLayouts;
}

std::vector<const LayoutRow*> RowsOf(absl::string_view field) {
  std::vector<const LayoutRow*> rows;
  for (const LayoutRow& row : Layouts()) {
    if (row.field == field) rows.push_back(&row);
  }
  CHECK(!rows.empty()) << "no row shares units by " << field;
  return rows;
}

const LayoutRow& RowOf(const ParallelismSpec& parallelism,
                       absl::string_view field) {
  const std::string method = MethodOf(parallelism, RankFieldOf(field));
  const LayoutRow* first = nullptr;
  for (const LayoutRow& row : Layouts()) {
    if (row.field != field) continue;
    if (row.method == method) return row;
    if (first == nullptr) first = &row;
  }
  CHECK(first != nullptr) << "no row shares units by " << field;
  return *first;
}

std::vector<const LayoutRow*> RowsInUse(const ParallelismSpec& parallelism) {
  std::vector<const LayoutRow*> rows;
  absl::string_view before;
  for (const LayoutRow& row : Layouts()) {
    if (row.field == before) continue;
    before = row.field;
    if (RanksOf(parallelism, std::string(row.field)) < 2) continue;
    rows.push_back(&RowOf(parallelism, row.field));
  }
  return rows;
}

std::string MethodNameOf(const LayoutRow& row) {
  return RankFieldOf(row.field).MethodName();
}

std::string MethodText(const LayoutRow& row) {
  return absl::StrCat("parallelism.", MethodNameOf(row), ": ", row.method);
}

bool CutsWithinSamples(const LayoutRow& row) {
  for (const RowAxis& axis : row.axes) {
    for (const DimRule& rule : axis.rules) {
      if (rule.kind != Dim::BATCH) return true;
    }
  }
  return false;
}

int SizeField::ValueFor(int size) const { return Power(size, power) * ranks; }

std::string SizeField::TextFor(int size) const {
  return text != nullptr ? text(*this, size) : absl::StrCat(ValueFor(size));
}

bool SizeField::MayBe(int size) const {
  if (part_of.empty()) return size >= (ranks > 1 ? 2 : 1);
  return size >= 2 && size < whole && whole % size == 0;
}

void TryAsItIs(const ParallelismSpec& parallelism,
               std::vector<ParallelismSpec>& ways) {
  ways.push_back(parallelism);
}

std::vector<int> DivisorsOf(int ranks) {
  std::vector<int> divisors;
  for (int d = 1; d <= ranks; ++d) {
    if (ranks % d == 0) divisors.push_back(d);
  }
  return divisors;
}

std::vector<int> AllOrOne(int ranks) {
  return ranks > 1 ? std::vector<int>{1, ranks} : std::vector<int>{1};
}

}  // namespace troupe
