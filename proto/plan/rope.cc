#include "proto/plan/rope.h"

#include <algorithm>
#include <cmath>

#include "proto/base/check.h"

namespace troupe {

int64_t RotaryColumns(const ModelSpec& model) {
  if (model.has_qk_rope_head_dim()) return model.qk_rope_head_dim();
  if (!model.has_partial_rotary_factor()) return model.head_dim();
  const int head_dim = model.hidden_size() / model.num_attention_heads();
  return static_cast<int64_t>(head_dim * model.partial_rotary_factor());
}

namespace {

constexpr double kPi = 3.14159265358979323846;

double Lerp(double from, double to, double weight) {
  return from * (1 - weight) + to * weight;
}

std::vector<double> Frequencies(double theta, int64_t columns) {
  std::vector<double> frequencies(columns / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(
        theta, -2.0 * static_cast<double>(i) / static_cast<double>(columns));
  }
  return frequencies;
}

std::vector<double> DynamicFrequencies(const ModelSpec& model,
                                       double sequence_length) {
  const RopeScaling& scaling = model.rope_scaling();
  const double original = scaling.original_max_position_embeddings();
  const double stretch = std::max(sequence_length / original, 1.0);
  const double dim = static_cast<double>(RotaryColumns(model));
  const double growth = scaling.factor() * stretch - (scaling.factor() - 1);
  return Frequencies(model.rope_theta() * std::pow(growth, dim / (dim - 2)),
                     RotaryColumns(model));
}

double Llama3Frequency(const RopeScaling& scaling, double frequency) {
  const double low = scaling.low_freq_factor();
  const double high = scaling.high_freq_factor();
  // How often the pair turns around in the first training's length.
  const double turns =
      scaling.original_max_position_embeddings() * frequency / (2 * kPi);
  const double weight = std::clamp((turns - low) / (high - low), 0.0, 1.0);
  return Lerp(frequency / scaling.factor(), frequency, weight);
}

// The dimension, a real number, that turns `turns` times in the original
// length.
double YarnDimension(const ModelSpec& model, double turns) {
  const double original =
      model.rope_scaling().original_max_position_embeddings();
  return RotaryColumns(model) * std::log(original / (turns * 2 * kPi)) /
         (2 * std::log(model.rope_theta()));
}

void ScaleYarn(const ModelSpec& model, std::vector<double>& frequencies) {
  const RopeScaling& scaling = model.rope_scaling();
  double low = YarnDimension(model, scaling.beta_fast());
  double high = YarnDimension(model, scaling.beta_slow());
  if (scaling.truncate()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, RotaryColumns(model) - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] =
        Lerp(frequencies[i], frequencies[i] / scaling.factor(), ramp);
  }
}

double YarnAttentionFactor(const RopeScaling& scaling) {
  if (scaling.has_attention_factor()) return scaling.attention_factor();
  const auto magnitude = [&](double weight) {
    return 0.1 * weight * std::log(std::max(scaling.factor(), 1.0)) + 1.0;
  };
  if (scaling.mscale() != 0 && scaling.mscale_all_dim() != 0) {
    return magnitude(scaling.mscale()) / magnitude(scaling.mscale_all_dim());
  }
  return magnitude(1.0);
}

}  // namespace

double LongRopeAttentionFactor(const RopeScaling& scaling) {
  if (scaling.has_attention_factor()) return scaling.attention_factor();
  if (scaling.factor() <= 1) return 1;
  return std::sqrt(1 +
                   std::log(scaling.factor()) /
                       std::log(scaling.original_max_position_embeddings()));
}

Rope RopeFrequencies(const ModelSpec& model, int64_t sequence_length) {
  Rope rope = {Frequencies(model.rope_theta(), RotaryColumns(model))};
  if (!model.has_rope_scaling()) return rope;
  const RopeScaling& scaling = model.rope_scaling();
  std::vector<double>& frequencies = rope.inverse_frequencies;
  if (scaling.type() == "linear") {
    for (double& frequency : frequencies) frequency /= scaling.factor();
  } else if (scaling.type() == "dynamic") {
    frequencies =
        DynamicFrequencies(model, static_cast<double>(sequence_length));
  } else if (scaling.type() == "llama3") {
    for (double& frequency : frequencies) {
      frequency = Llama3Frequency(scaling, frequency);
    }
  } else if (scaling.type() == "yarn") {
    ScaleYarn(model, frequencies);
    rope.attention_factor = YarnAttentionFactor(scaling);
  } else {
    CHECK_EQ(scaling.type(), "longrope");
    const bool is_long =
        sequence_length > scaling.original_max_position_embeddings();
    for (size_t i = 0; i < frequencies.size(); ++i) {
      frequencies[i] /= is_long ? scaling.long_factor(static_cast<int>(i))
                                : scaling.short_factor(static_cast<int>(i));
    }
    rope.attention_factor = LongRopeAttentionFactor(scaling);
  }
  return rope;
}

}  // namespace troupe
