// How the SVG looks: colours and type, in one place. The colours of kinds are
// told apart by people with any colour vision (Okabe and Ito's palette, "Color
// Universal Design", 2008, with forward dark, backward-input middling and
// backward-weight light), on white and, where a browser prefers it, on black.
#ifndef TROUPE_CLIENTS_GANTT_SVG_STYLE_H_
#define TROUPE_CLIENTS_GANTT_SVG_STYLE_H_

#include <string>

#include "clients/gantt/bar_kind.h"

namespace troupe {

// The class of a bar: "f", and "f1" for every other stage that a rank holds.
std::string BarClass(BarKind kind, int chunk);
// The class of the text on it.
std::string LabelClass(BarKind kind, int chunk);

// The content of the picture's <style>.
std::string SvgStyle();

// Width of `characters` digits in units of the font size, at most.
double DigitsWidth(int characters);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_SVG_STYLE_H_
