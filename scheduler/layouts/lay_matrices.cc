#include "scheduler/layouts/lay_matrices.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/layout.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

// Of what is trained, gaps included, over that without them: at most.
constexpr int64_t kSizeMax = 2;

// Whether ranks have a part each of a matrix of the parameter. Of three dims
// the first one counts matrices, such as those of experts.
bool IsCut(const Parameter& parameter) {
  for (int d = parameter.dims_size() == 3 ? 1 : 0; d < parameter.dims_size();
       ++d) {
    for (const Dim::Section& section : parameter.dims(d).sections()) {
      if (!section.cuts().empty()) return true;
    }
  }
  return false;
}

// A parameter as it lies in the unit's flat buffer.
struct Lies {
  int parameter = 0;
  int part = 0;
  int64_t elements = 0;  // aligned
  bool whole = false;    // within one slice
};

// The parts, as they lie; of one whose updates are of matrices, the largest
// first, which leaves the smallest gaps.
std::vector<Lies> Lying(const Unit& unit, int first, int part_count) {
  std::vector<Lies> all;
  for (int part = first; part < first + part_count; ++part) {
    const Range range = RangeOfPart(unit, part);
    std::vector<Lies> lies;
    for (int p = 0; p < unit.parameters_size(); ++p) {
      const Parameter& parameter = unit.parameters(p);
      if (parameter.offset() < range.begin || parameter.offset() >= range.end) {
        continue;
      }
      lies.push_back({.parameter = p,
                      .part = part,
                      .elements = FlatAligned(LocalElements(parameter)),
                      .whole = unit.parts(part).whole_parameters()});
    }
    std::stable_sort(lies.begin(), lies.end(),
                     [&unit](const Lies& a, const Lies& b) {
                       if (a.whole) return a.elements > b.elements;
                       return unit.parameters(a.parameter).offset() <
                              unit.parameters(b.parameter).offset();
                     });
    all.insert(all.end(), lies.begin(), lies.end());
  }
  return all;
}

// The rule of the first that is whole.
const std::string& NameOfFirst(const OptimizerSpec& optimizer,
                               const Unit& unit) {
  int part = 0;
  while (!unit.parts(part).whole_parameters()) ++part;
  return NameOfRule(optimizer, unit.parts(part).rule());
}

// Slices of `elements` elements in all: where they end.
std::vector<int64_t> EndsOf(const SlicedParts& parts, int64_t elements) {
  std::vector<int64_t> ends;
  for (int rank = 0; rank < parts.ranks; ++rank) {
    ends.push_back(parts.weights.empty()
                       ? EvenLines(elements, {rank, parts.ranks}).end
                       : WeightedLines(elements, parts.weights, rank).end);
  }
  return ends;
}

// Where each begins in such slices, and where the last one ends: behind the
// last slice, where they do not fit.
std::vector<int64_t> OffsetsIn(const std::vector<int64_t>& ends,
                               const std::vector<Lies>& all) {
  std::vector<int64_t> offsets;
  int64_t end = 0;
  size_t slice = 0;
  for (const Lies& lies : all) {
    while (slice < ends.size() &&
           (ends[slice] <= end ||
            (lies.whole && end + lies.elements > ends[slice]))) {
      if (lies.whole) end = std::max(end, FlatAligned(ends[slice]));
      ++slice;
    }
    offsets.push_back(end);
    end += lies.elements;
  }
  offsets.push_back(end);
  return offsets;
}

// The fewest elements in all with which all of it lies in the ranks' slices;
// with weights at most elements_max, and nothing where that is not enough.
absl::optional<int64_t> FewestElements(const SlicedParts& parts,
                                       const std::vector<Lies>& all,
                                       int64_t elements_max) {
  int64_t sum = 0;
  int64_t largest = 0;
  for (const Lies& lies : all) {
    sum += lies.elements;
    if (lies.whole) largest = std::max(largest, lies.elements);
  }
  int64_t slice = FlatAligned((sum + parts.ranks - 1) / parts.ranks);  // mean
  const bool even = parts.weights.empty();
  if (even) slice = std::max(slice, largest);
  while (OffsetsIn(EndsOf(parts, parts.ranks * slice), all).back() >
         parts.ranks * slice) {
    slice += std::max(kFlatAlignment, FlatAligned(slice / 64));
    if (!even && parts.ranks * slice > elements_max) return absl::nullopt;
  }
  return parts.ranks * slice;
}

}  // namespace

absl::Status CheckMatrices(const OptimizerSpec& optimizer, const Unit& unit) {
  for (const Lies& lies : Lying(unit, 0, TrainedParts(unit))) {
    if (!lies.whole) continue;
    const Parameter& parameter = unit.parameters(lies.parameter);
    const int rule = unit.parts(lies.part).rule();
    const std::string field = NameFieldOfRule(rule);
    const std::string& name = NameOfRule(optimizer, rule);
    if (parameter.dims_size() < 2 && !UpdatesVectors(optimizer, rule)) {
      return FieldError(
          field, absl::StrCat(name, " trains matrices, and ", parameter.name(),
                              " is a vector; match matrices only"));
    }
    if (IsCut(parameter)) {
      return FieldError(
          field, absl::StrCat(name,
                              " needs whole parameters, and ranks have a "
                              "part of ",
                              parameter.name(),
                              " each; share the units by parallelism.data, "
                              "batch, context or pipeline"));
    }
  }
  return absl::OkStatus();
}

absl::Status LayMatrices(const OptimizerSpec& optimizer,
                         const SlicedParts& parts, Unit& unit) {
  const int ranks = parts.ranks;
  const int last = parts.part + parts.part_count - 1;
  const std::vector<Lies> all = Lying(unit, parts.part, parts.part_count);
  if (ranks == 1 || std::none_of(all.begin(), all.end(),
                                 [](const Lies& lies) { return lies.whole; })) {
    return absl::OkStatus();
  }
  const Range lay = {.begin = RangeOfPart(unit, parts.part).begin,
                     .end = RangeOfPart(unit, last).end};
  const int64_t before = lay.size();
  const absl::optional<int64_t> fewest =
      FewestElements(parts, all, kSizeMax * before);
  if (!fewest.has_value()) {
    return FieldError(
        "parallelism.zero_weights",
        absl::StrCat("whole matrices, which ", NameOfFirst(optimizer, unit),
                     " needs, do not fit slices of such sizes, though these "
                     "were twice as large as what is in them; use weights "
                     "that differ less, larger ones first, or leave it out"));
  }
  const int64_t slice = *fewest / ranks;
  if (*fewest > kSizeMax * before) {
    return FieldError(
        absl::StrCat("parallelism.", parts.field),
        absl::StrCat("whole matrices, which ", NameOfFirst(optimizer, unit),
                     " needs, do not fill the slices of ", ranks,
                     " ranks: to hold some of them, a slice has ", slice,
                     " elements, and what is sliced has ", before, "; use a ",
                     parts.field, " of at most ",
                     std::max<int64_t>(1, kSizeMax * before / slice)));
  }
  const std::vector<int64_t> offsets = OffsetsIn(EndsOf(parts, *fewest), all);
  const int64_t moved = *fewest - before;
  for (Parameter& parameter : *unit.mutable_parameters()) {
    if (parameter.offset() >= lay.end) {
      parameter.set_offset(parameter.offset() + moved);
    }
  }
  std::vector<int64_t> begins(parts.part_count + 1, *fewest);
  for (size_t i = all.size(); i-- > 0;) {
    unit.mutable_parameters(all[i].parameter)
        ->set_offset(lay.begin + offsets[i]);
    begins[all[i].part - parts.part] = offsets[i];
  }
  begins[0] = 0;
  for (int p = 0; p < parts.part_count; ++p) {
    unit.mutable_parts(parts.part + p)->set_elements(begins[p + 1] - begins[p]);
  }
  unit.set_flat_elements(unit.flat_elements() + moved);
  return absl::OkStatus();
}

}  // namespace troupe
