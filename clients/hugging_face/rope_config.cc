#include "clients/hugging_face/rope_config.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using nlohmann::json;

constexpr double kThetaDefault = 10000;
constexpr char kPart[] = "partial_rotary_factor";

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

absl::Status ReadScaling(const JsonFields& rope, ModelSpec& model) {
  const char* key = rope.Has("rope_type") ? "rope_type" : "type";
  if (!rope.Has(key)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, rope.Text(key));
  if (type == "default") return absl::OkStatus();
  RopeScaling& scaling = *model.mutable_rope_scaling();
  scaling.set_type(type);
  for (int i = 0; i < RopeScaling::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *RopeScaling::descriptor()->field(i);
    if (field.name() == "type" || !rope.Has(field.name().c_str())) continue;
    RETURN_IF_ERROR(ReadField(rope, field, scaling));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadRope(const JsonFields& config, const RopeKeys& keys,
                      ModelSpec& model) {
  double part = keys.part_default.value_or(1);
  ASSIGN_OR_RETURN(part, config.NumberOr(keys.part, part));
  ASSIGN_OR_RETURN(double theta, config.NumberOr(keys.theta, kThetaDefault));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(key)) continue;
    ASSIGN_OR_RETURN(const JsonFields rope, config.Object(key));
    ASSIGN_OR_RETURN(part, rope.NumberOr(kPart, part));
    ASSIGN_OR_RETURN(theta, rope.NumberOr("rope_theta", theta));
    model.clear_rope_scaling();
    RETURN_IF_ERROR(ReadScaling(rope, model));
  }
  model.set_rope_theta(theta);
  if (keys.part_default.has_value()) {
    model.set_partial_rotary_factor(part);
  } else if (part != 1) {
    return config.Error(kPart,
                        "heads that rotate in part are not supported here");
  }
  // longrope: the older files keep the first length beside the object.
  const char* const first_length = "original_max_position_embeddings";
  if (model.has_rope_scaling() && config.Has(first_length) &&
      !model.rope_scaling().has_original_max_position_embeddings()) {
    ASSIGN_OR_RETURN(const int length, config.Int(first_length));
    model.mutable_rope_scaling()->set_original_max_position_embeddings(length);
  }
  return absl::OkStatus();
}

void WriteRope(const ModelSpec& model, json& config) {
  for (const char* key :
       {"rope_theta", "rope_scaling", "rotary_emb_base", "rotary_pct", kPart}) {
    config.erase(key);
  }
  json rope = {{"rope_type", "default"}, {"rope_theta", model.rope_theta()}};
  if (model.has_partial_rotary_factor()) {
    rope[kPart] = model.partial_rotary_factor();
  }
  if (model.has_rope_scaling()) {
    const RopeScaling& scaling = model.rope_scaling();
    for (int i = 0; i < RopeScaling::descriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *RopeScaling::descriptor()->field(i);
      if (field.name() == "type" || !IsSet(scaling, field)) continue;
      rope[field.name()] = FieldJson(scaling, field);
    }
    rope["rope_type"] = scaling.type();
  }
  config["rope_parameters"] = std::move(rope);
}

}  // namespace troupe
