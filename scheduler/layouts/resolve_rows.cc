#include "scheduler/layouts/resolve_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/sharing.h"

namespace troupe {
namespace {

std::string PathOf(const std::string& field) {
  return absl::StrCat("parallelism.", field);
}

bool Has(const LayoutRow& row, const std::string& field) {
  return std::count(row.fields.begin(), row.fields.end(), field) > 0;
}

// Given, and not as if it were not.
bool IsSaid(const ParallelismSpec& parallelism, const std::string& field) {
  return HasField(parallelism, field) &&
         FieldText(parallelism, field) != "false";
}

// Of a field that says how ranks share a unit, where there is one rank.
absl::Status CheckSharesNothing(const RankField& field, const std::string& said,
                                const LayoutRow& row,
                                const ParallelismSpec& parallelism) {
  if (!IsSaid(parallelism, said)) return absl::OkStatus();
  return FieldError(PathOf(said),
                    absl::StrCat("says how the ranks of ", field.Path(),
                                 " share a unit, which is 1; use ",
                                 row.examples, ", or leave it out"));
}

absl::Status CheckIsOfRow(const RankField& field, const std::string& said,
                          const LayoutRow& row,
                          const ParallelismSpec& parallelism) {
  if (Has(row, said) || !IsSaid(parallelism, said)) return absl::OkStatus();
  std::vector<absl::string_view> methods;
  for (const LayoutRow* const other : RowsOf(field.name)) {
    if (Has(*other, said)) methods.push_back(other->method);
  }
  return FieldError(
      PathOf(said),
      absl::StrCat("is for ", PathOf(field.MethodName()), ": ",
                   absl::StrJoin(methods, " or "), "; leave it out"));
}

absl::Status ResolveMethod(const RankField& field,
                           ParallelismSpec& parallelism) {
  const std::vector<const LayoutRow*> rows = RowsOf(field.name);
  if (rows.size() == 1) return absl::OkStatus();
  const std::string method = field.MethodName();
  if (HasField(parallelism, method)) {
    std::vector<std::string> names;
    for (const LayoutRow* const row : rows) names.emplace_back(row->method);
    return CheckName(PathOf(method), FieldText(parallelism, method), names);
  }
  const LayoutRow& row = *rows.front();
  if (!row.implied && RanksOf(parallelism, field.name) > 1) {
    SetField(method, std::string(row.method), parallelism);
  }
  return absl::OkStatus();
}

// What is yes or no is said in a resolved job.
void SayNo(const std::string& field, ParallelismSpec& parallelism) {
  if (!HasField(parallelism, field) && IsYesOrNo(field)) {
    SetField(field, "false", parallelism);
  }
}

absl::Status ResolveField(const RankField& field,
                          ParallelismSpec& parallelism) {
  if (!HasField(parallelism, field.name)) {
    SetRanks(field.name, 1, parallelism);
  }
  RETURN_IF_ERROR(ResolveMethod(field, parallelism));
  const LayoutRow& row = RowOf(parallelism, field.name);
  const bool is_one = RanksOf(parallelism, field.name) == 1;
  if (is_one && RowsOf(field.name).size() > 1) {
    RETURN_IF_ERROR(
        CheckSharesNothing(field, field.MethodName(), row, parallelism));
  }
  for (const std::string& own : OwnFieldsOf(field.name)) {
    SayNo(own, parallelism);
    RETURN_IF_ERROR(is_one ? CheckSharesNothing(field, own, row, parallelism)
                           : CheckIsOfRow(field, own, row, parallelism));
  }
  if (is_one || row.resolve == nullptr) return absl::OkStatus();
  return row.resolve(parallelism);
}

}  // namespace

absl::Status ResolveRows(ParallelismSpec& parallelism) {
  for (const RankField& field : FactorFields()) {
    RETURN_IF_ERROR(ResolveField(field, parallelism));
  }
  return absl::OkStatus();
}

absl::Status ResolveRowsOfData(ParallelismSpec& parallelism) {
  for (const RankField& field : RankFields()) {
    if (!field.of_data) continue;
    RETURN_IF_ERROR(CheckInteger(field.Path(), RanksOf(parallelism, field.name),
                                 {.min = 1, .max = field.max}));
    RETURN_IF_ERROR(ResolveField(field, parallelism));
  }
  return absl::OkStatus();
}

void ClearMethod(const std::string& field, ParallelismSpec& parallelism) {
  for (const RankField& of : RankFields()) {
    if (of.name == field && RowsOf(field).size() > 1) {
      ClearField(of.MethodName(), parallelism);
    }
  }
  for (const std::string& own : OwnFieldsOf(field)) {
    ClearField(own, parallelism);
  }
}

std::vector<std::string> OwnFieldsOf(const std::string& field) {
  std::vector<std::string> fields;
  for (const LayoutRow* const row : RowsOf(field)) {
    for (const std::string& own : row->fields) {
      if (std::count(fields.begin(), fields.end(), own) == 0) {
        fields.push_back(own);
      }
    }
  }
  return fields;
}

}  // namespace troupe
