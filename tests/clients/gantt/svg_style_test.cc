#include "clients/gantt/svg_style.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// What the style says that a class is filled with; red, green, blue in [0, 1].
using Colour = std::array<double, 3>;
Colour FillOf(const std::string& name) {
  const std::string style = SvgStyle();
  const size_t at = style.find("." + name + "{fill:#");
  EXPECT_NE(at, std::string::npos) << name;
  std::string digits = style.substr(at + name.size() + 8, 6);
  if (digits[3] == '}') {
    digits = {digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]};
  }
  Colour colour;
  for (int i = 0; i < 3; ++i) {
    colour[i] = std::stoi(digits.substr(2 * i, 2), nullptr, 16) / 255.0;
  }
  return colour;
}

// WCAG 2's relative luminance.
double Luminance(const Colour& colour) {
  const auto linear = [](double x) {
    return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) +
         0.0722 * linear(colour[2]);
}

double Contrast(const Colour& a, const Colour& b) {
  const double light = std::max(Luminance(a), Luminance(b));
  const double dark = std::min(Luminance(a), Luminance(b));
  return (light + 0.05) / (dark + 0.05);
}

TEST(SvgStyle, PassesAreToldApartByLightnessAlone) {
  const Colour forward = FillOf(BarClass(BarKind::kForward, 0));
  const Colour input = FillOf(BarClass(BarKind::kBackwardInput, 0));
  const Colour weight = FillOf(BarClass(BarKind::kBackwardWeight, 0));
  EXPECT_GT(Contrast(forward, input), 1.5);
  EXPECT_GT(Contrast(input, weight), 1.5);
}

TEST(SvgStyle, NumbersCanBeRead) {
  for (const BarKind kind :
       {BarKind::kForward, BarKind::kRecompute, BarKind::kBackwardInput,
        BarKind::kBackwardWeight}) {
    for (const int chunk : {0, 1}) {
      EXPECT_GT(Contrast(FillOf(BarClass(kind, chunk)),
                         FillOf(LabelClass(kind, chunk))),
                4.5)
          << NameOf(kind).name << chunk;
    }
  }
}

TEST(SvgStyle, EveryKindHasAColourOfItsOwn) {
  std::vector<Colour> seen;
  for (const BarKind kind : kBarKinds) {
    const Colour colour = FillOf(BarClass(kind, 0));
    for (const Colour& other : seen) EXPECT_NE(colour, other);
    seen.push_back(colour);
  }
}

TEST(SvgStyle, StagesOfARankAlternate) {
  EXPECT_EQ(BarClass(BarKind::kForward, 0), BarClass(BarKind::kForward, 2));
  EXPECT_NE(FillOf(BarClass(BarKind::kForward, 0)),
            FillOf(BarClass(BarKind::kForward, 1)));
}

}  // namespace
}  // namespace troupe
