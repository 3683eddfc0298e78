#include "clients/hugging_face/rope_config.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/base/status.h"
#include "proto/plan/rope.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using nlohmann::json;

constexpr double kThetaDefault = 10000;
constexpr char kPart[] = "partial_rotary_factor";
// The length of the first training, which some scalings stretch.
constexpr char kFirstLength[] = "original_max_position_embeddings";

absl::Status Disagree(const JsonFields& fields, const char* key,
                      absl::string_view what, absl::string_view other) {
  return fields.Error(
      key, absl::StrCat("is ", what, ", but ", other,
                        "; versions of transformers differ in which of them "
                        "they read: remove the wrong one"));
}

// A number that several keys may give.
class SaidNumber {
 public:
  absl::Status Read(const JsonFields& fields, const char* key) {
    if (!fields.Has(key)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const double value, fields.Number(key));
    if (place_.empty()) {
      place_ = fields.Place(key);
      value_ = value;
    }
    if (value == value_) return absl::OkStatus();
    return Disagree(fields, key, absl::StrCat(value),
                    absl::StrCat(place_, " is ", value_));
  }

  double Or(double fallback) const {
    return place_.empty() ? fallback : value_;
  }

 private:
  std::string place_;
  double value_ = 0;
};

// The fields of RopeScaling bear transformers' names, so that one walk over the
// message reads them and another writes them.
absl::Status ReadField(const JsonFields& rope, const FieldDescriptor& field,
                       RopeScaling& scaling) {
  const Reflection& to = *scaling.GetReflection();
  const char* key = field.name().c_str();
  if (field.is_repeated()) {
    ASSIGN_OR_RETURN(const std::vector<double> numbers, rope.Numbers(key));
    for (const double number : numbers) to.AddDouble(&scaling, &field, number);
    return absl::OkStatus();
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double number, rope.Number(key));
      to.SetDouble(&scaling, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      ASSIGN_OR_RETURN(const int number, rope.Int(key));
      to.SetInt32(&scaling, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool flag, rope.BoolOr(key, false));
      to.SetBool(&scaling, &field, flag);
      return absl::OkStatus();
    }
    default: {  // `type`, which has other names there
      return absl::OkStatus();
    }
  }
}

json FieldJson(const RopeScaling& scaling, const FieldDescriptor& field) {
  const Reflection& from = *scaling.GetReflection();
  if (field.is_repeated()) {
    json numbers = json::array();
    for (int i = 0; i < from.FieldSize(scaling, &field); ++i) {
      numbers.push_back(from.GetRepeatedDouble(scaling, &field, i));
    }
    return numbers;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return from.GetInt32(scaling, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return from.GetBool(scaling, &field);
    default:
      return from.GetDouble(scaling, &field);
  }
}

bool IsSet(const RopeScaling& scaling, const FieldDescriptor& field) {
  const Reflection& reflection = *scaling.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(scaling, &field) > 0
                             : reflection.HasField(scaling, &field);
}

absl::StatusOr<std::string> ReadType(const JsonFields& rope) {
  std::string type = "default";
  if (rope.Has("type")) {
    ASSIGN_OR_RETURN(type, rope.Text("type"));
  }
  if (!rope.Has("rope_type")) return type;
  ASSIGN_OR_RETURN(const std::string newer, rope.Text("rope_type"));
  if (!rope.Has("type") || newer == type) return newer;
  return Disagree(rope, "rope_type", newer,
                  absl::StrCat(rope.Place("type"), " is ", type));
}

// Without a type: none.
absl::StatusOr<RopeScaling> ReadScaling(const JsonFields& rope) {
  RopeScaling scaling;
  ASSIGN_OR_RETURN(const std::string type, ReadType(rope));
  if (type == "default") return scaling;
  scaling.set_type(type);
  for (int i = 0; i < RopeScaling::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *RopeScaling::descriptor()->field(i);
    if (field.name() == "type" || !rope.Has(field.name().c_str())) continue;
    RETURN_IF_ERROR(ReadField(rope, field, scaling));
  }
  // transformers does not read it: there dynamic stretches from
  // max_position_embeddings, as it does here where nothing else is said.
  if (type == "dynamic") scaling.clear_original_max_position_embeddings();
  return scaling;
}

// Of two objects that both say it all.
absl::Status CheckAlike(const JsonFields& config, const RopeScaling& older,
                        const RopeScaling& newer) {
  for (int i = 0; i < RopeScaling::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *RopeScaling::descriptor()->field(i);
    const auto text = [&](const RopeScaling& scaling) -> std::string {
      if (field.name() == "type") {
        return scaling.has_type() ? scaling.type() : "default";
      }
      return IsSet(scaling, field) ? FieldJson(scaling, field).dump()
                                   : "absent";
    };
    if (text(older) == text(newer)) continue;
    return Disagree(
        config, "rope_parameters",
        absl::StrCat("an object whose ", field.name(), " is ", text(newer)),
        absl::StrCat("that of ", config.Place("rope_scaling"), " is ",
                     text(older)));
  }
  return absl::OkStatus();
}

// The key beside the object: what older files of longrope have.
absl::Status ReadFirstLength(const JsonFields& config, ModelSpec& model) {
  RopeScaling& scaling = *model.mutable_rope_scaling();
  const std::string& type = scaling.type();
  const bool has_length =
      type == "llama3" || type == "yarn" || type == "longrope";
  if (!has_length || !config.Has(kFirstLength)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int length, config.Int(kFirstLength));
  const int inside = scaling.original_max_position_embeddings();
  if (scaling.has_original_max_position_embeddings() && inside != length) {
    return Disagree(config, kFirstLength, absl::StrCat(length),
                    absl::StrCat("that within the object of RoPE is ", inside));
  }
  scaling.set_original_max_position_embeddings(length);
  if (type != "longrope" || !scaling.has_factor() ||
      scaling.has_attention_factor() || length == 0) {
    return absl::OkStatus();
  }
  const double ratio =
      static_cast<double>(model.max_position_embeddings()) / length;
  if (scaling.factor() == ratio) return absl::OkStatus();
  return Disagree(
      config, kFirstLength,
      absl::StrCat(length, ", which makes the factor ", ratio),
      absl::StrCat("that within the object of RoPE is ", scaling.factor()));
}

// Transformers 4 takes the first length from beside the object, and makes the
// factor of attention of it where none is said.
void SayLongRopeTwice(RopeScaling& scaling, json& config) {
  const double factor = LongRopeAttentionFactor(scaling);
  if (!std::isfinite(factor)) return;
  config[kFirstLength] = scaling.original_max_position_embeddings();
  scaling.set_attention_factor(factor);
}

json ScalingJson(const RopeScaling& scaling) {
  json rope = {{"rope_type", scaling.type()}};
  for (int i = 0; i < RopeScaling::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *RopeScaling::descriptor()->field(i);
    if (field.name() == "type" || !IsSet(scaling, field)) continue;
    rope[field.name()] = FieldJson(scaling, field);
  }
  return rope;
}

}  // namespace

absl::Status ReadRope(const JsonFields& config, const RopeKeys& keys,
                      ModelSpec& model) {
  SaidNumber theta, part;
  RETURN_IF_ERROR(theta.Read(config, keys.theta));
  RETURN_IF_ERROR(part.Read(config, keys.part));
  absl::optional<RopeScaling> scaling;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(key)) continue;
    ASSIGN_OR_RETURN(const JsonFields rope, config.Object(key));
    RETURN_IF_ERROR(theta.Read(rope, "rope_theta"));
    RETURN_IF_ERROR(part.Read(rope, kPart));
    ASSIGN_OR_RETURN(RopeScaling read, ReadScaling(rope));
    if (scaling.has_value()) {
      RETURN_IF_ERROR(CheckAlike(config, *scaling, read));
    }
    scaling = std::move(read);
  }
  model.set_rope_theta(theta.Or(kThetaDefault));
  if (keys.part_default.has_value()) {
    model.set_partial_rotary_factor(part.Or(*keys.part_default));
  } else if (part.Or(1) != 1) {
    return config.Error(kPart,
                        "heads that rotate in part are not supported here");
  }
  model.clear_rope_scaling();
  if (!scaling.has_value() || !scaling->has_type()) return absl::OkStatus();
  *model.mutable_rope_scaling() = *std::move(scaling);
  return ReadFirstLength(config, model);
}

// Where transformers 5 finds "rope_scaling" it takes that, with the theta and
// the part beside it, so the two objects say the same.
void WriteRope(const ModelSpec& model, const RopeKeys& keys, json& config) {
  for (const char* key :
       {"rope_theta", "rope_scaling", "rope_parameters", "rotary_emb_base",
        "rotary_pct", kPart, kFirstLength}) {
    config.erase(key);
  }
  json rope = {{"rope_type", "default"}};
  if (model.has_rope_scaling()) {
    RopeScaling scaling = model.rope_scaling();
    if (scaling.type() == "dynamic" &&
        scaling.has_original_max_position_embeddings()) {
      config["max_position_embeddings"] =
          scaling.original_max_position_embeddings();
      scaling.clear_original_max_position_embeddings();
    }
    if (scaling.type() == "longrope") SayLongRopeTwice(scaling, config);
    rope = ScalingJson(scaling);
    config["rope_scaling"] = rope;
  }
  config[keys.theta] = rope["rope_theta"] = model.rope_theta();
  if (model.has_partial_rotary_factor()) {
    config[keys.part] = rope[kPart] = model.partial_rotary_factor();
  }
  config["rope_parameters"] = std::move(rope);
}

}  // namespace troupe
