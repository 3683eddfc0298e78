#include "proto/plan/sharing.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/base/check.h"
#include "proto/plan/plan_limits.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const FieldDescriptor& FieldOf(const std::string& name) {
  const FieldDescriptor* const field =
      ParallelismSpec::descriptor()->FindFieldByName(name);
  CHECK(field != nullptr) << "parallelism has no " << name;
  return *field;
}

// Those of a strategy that the job's parallelism has, too, in its order.
const std::vector<const FieldDescriptor*>& SharingFields() {
  static const auto* const kFields = [] {
    auto* const fields = new std::vector<const FieldDescriptor*>;
    const auto& strategy = *StrategySpec::descriptor();
    for (int i = 0; i < strategy.field_count(); ++i) {
      const FieldDescriptor* const field =
          ParallelismSpec::descriptor()->FindFieldByName(
              strategy.field(i)->name());
      if (field != nullptr) fields->push_back(field);
    }
    return fields;
  }();
  return *kFields;
}

// Those of fields of data, which are named so, or after one.
const std::vector<const FieldDescriptor*>& FieldsOfData() {
  static const auto* const kFields = [] {
    auto* const fields = new std::vector<const FieldDescriptor*>;
    const auto& all = *ParallelismSpec::descriptor();
    for (const RankField& of : RankFields()) {
      if (!of.of_data) continue;
      for (int i = 0; i < all.field_count(); ++i) {
        const std::string& name = all.field(i)->name();
        if (name == of.name || absl::StartsWith(name, of.name + "_")) {
          fields->push_back(all.field(i));
        }
      }
    }
    return fields;
  }();
  return *kFields;
}

std::string TextOf(const Message& message, const FieldDescriptor& field) {
  const Reflection& get = *message.GetReflection();
  if (!get.HasField(message, &field)) return "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(get.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(get.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_STRING:
      return get.GetString(message, &field);
    default:
      CHECK(false) << field.name() << " is no number, word or yes and no";
      return "";
  }
}

void SetText(const FieldDescriptor& field, const std::string& text,
             Message& message) {
  const Reflection& set = *message.GetReflection();
  int number = 0;
  double real = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      CHECK(absl::SimpleAtod(text, &real)) << field.name() << ": " << text;
      return set.SetDouble(&message, &field, real);
    case FieldDescriptor::CPPTYPE_INT32:
      CHECK(absl::SimpleAtoi(text, &number)) << field.name() << ": " << text;
      return set.SetInt32(&message, &field, number);
    case FieldDescriptor::CPPTYPE_BOOL:
      return set.SetBool(&message, &field, text == "true");
    case FieldDescriptor::CPPTYPE_STRING:
      return set.SetString(&message, &field, text);
    default:
      CHECK(false) << field.name() << " is no number, word or yes and no";
  }
}

void CopyFields(const std::vector<const FieldDescriptor*>& fields,
                const Message& from, Message& to) {
  for (const FieldDescriptor* const field : fields) {
    const auto in = [field](const Message& message) {
      return message.GetDescriptor()->FindFieldByName(field->name());
    };
    to.GetReflection()->ClearField(&to, in(to));
    if (!from.GetReflection()->HasField(from, in(from))) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      to.GetReflection()->SetDouble(
          &to, in(to), from.GetReflection()->GetDouble(from, in(from)));
    } else {
      SetText(*in(to), TextOf(from, *in(from)), to);
    }
  }
}

// What need not be said: 1 rank, or no. Of a field of data `expert_tensor: 1`
// says something.
bool IsLeftOut(const FieldDescriptor& field, const std::string& text) {
  if (text.empty() || text == "false") return true;
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_INT32) return false;
  const auto& of_data = FieldsOfData();
  const bool says = !IsRankField(field.name()) &&
                    std::count(of_data.begin(), of_data.end(), &field) > 0;
  return text == "0" || (text == "1" && !says);
}

// Without what is 1 or false.
std::vector<std::string> TextsOf(
    const std::vector<const FieldDescriptor*>& fields,
    const ParallelismSpec& parallelism) {
  std::vector<std::string> parts;
  for (const FieldDescriptor* const field : fields) {
    const std::string text = TextOf(parallelism, *field);
    if (IsLeftOut(*field, text)) continue;
    parts.push_back(absl::StrCat(field->name(), ": ", text));
  }
  return parts;
}

}  // namespace

const std::vector<RankField>& RankFields() {
  static const auto* const kFields = new std::vector<RankField>{
      {"expert", kRanksMax, /*of_data=*/true},
      {"batch", kBatchMax},
      {"context", kContextMax},
      {"tensor", kTensorMax},
  };
  return *kFields;
}

const std::vector<RankField>& FactorFields() {
  static const auto* const kFields = [] {
    auto* const fields = new std::vector<RankField>;
    for (const RankField& field : RankFields()) {
      if (!field.of_data) fields->push_back(field);
    }
    return fields;
  }();
  return *kFields;
}

bool IsRankField(const std::string& name) {
  const std::vector<RankField>& fields = RankFields();
  return std::any_of(
      fields.begin(), fields.end(),
      [&name](const RankField& field) { return field.name == name; });
}

bool SharesUnits(const ParallelismSpec& parallelism) {
  const std::vector<RankField>& fields = FactorFields();
  return std::any_of(fields.begin(), fields.end(),
                     [&parallelism](const RankField& field) {
                       return RanksOf(parallelism, field.name) > 1;
                     });
}

int RanksOf(const ParallelismSpec& parallelism, const std::string& field) {
  const FieldDescriptor& of = FieldOf(field);
  const Reflection& get = *parallelism.GetReflection();
  return get.HasField(parallelism, &of) ? get.GetInt32(parallelism, &of) : 1;
}

void SetRanks(const std::string& field, int ranks,
              ParallelismSpec& parallelism) {
  parallelism.GetReflection()->SetInt32(&parallelism, &FieldOf(field), ranks);
}

bool HasField(const ParallelismSpec& parallelism, const std::string& field) {
  const FieldDescriptor* const of =
      ParallelismSpec::descriptor()->FindFieldByName(field);
  return of != nullptr &&
         parallelism.GetReflection()->HasField(parallelism, of);
}

void ClearField(const std::string& field, ParallelismSpec& parallelism) {
  parallelism.GetReflection()->ClearField(&parallelism, &FieldOf(field));
}

bool IsYesOrNo(const std::string& field) {
  return FieldOf(field).cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}

std::string FieldText(const ParallelismSpec& parallelism,
                      const std::string& field) {
  return TextOf(parallelism, FieldOf(field));
}

void SetField(const std::string& field, const std::string& text,
              ParallelismSpec& parallelism) {
  SetText(FieldOf(field), text, parallelism);
}

void CopySharing(const ParallelismSpec& from, ParallelismSpec& to) {
  CopyFields(SharingFields(), from, to);
  CopyFields(FieldsOfData(), from, to);
}

void CopySharing(const ParallelismSpec& from, StrategySpec& to) {
  CopyFields(SharingFields(), from, to);
}

void CopySharing(const StrategySpec& from, ParallelismSpec& to) {
  CopyFields(SharingFields(), from, to);
}

std::string SharingText(const ParallelismSpec& parallelism) {
  const std::vector<std::string> parts = TextsOf(SharingFields(), parallelism);
  return parts.empty() ? "1 rank" : absl::StrJoin(parts, ", ");
}

std::string StrategiesText(const ParallelismSpec& parallelism) {
  return absl::StrJoin(parallelism.strategies(), "; ",
                       [](std::string* out, const StrategySpec& strategy) {
                         ParallelismSpec shares;
                         CopySharing(strategy, shares);
                         absl::StrAppend(
                             out,
                             strategy.has_stage()
                                 ? absl::StrCat("stage ", strategy.stage())
                                 : absl::StrJoin(strategy.units(), " and "),
                             " by ", SharingText(shares));
                       });
}

std::string SharingOfDataText(const ParallelismSpec& parallelism) {
  return absl::StrJoin(TextsOf(FieldsOfData(), parallelism), ", ");
}

}  // namespace troupe
