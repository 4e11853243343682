#include "tools/loss_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/xml_text.h"

namespace interp {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 420;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 36;
constexpr double kBottom = 40;
constexpr const char* kColors[] = {"#1b6ca8", "#c44536", "#3a7d44",
                                   "#7d5ba6", "#b08900", "#444444"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A range with a width, also around one value or none.
  Range Widened() const {
    if (!(low <= high)) return {0, 1};
    if (low < high) return *this;
    const double margin = low == 0 ? 1 : std::abs(low) / 2;
    return {low - margin, high + margin};
  }
};

// Round numbers in the range: 1, 2 or 5 times a power of ten apart, 4 to 9 of them.
std::vector<double> Ticks(const Range& range) {
  const double rough = (range.high - range.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (rough > step) step = power * factor;
  }
  constexpr int kMost = 16;  // where numbers are so close that a step is lost in them
  std::vector<double> ticks;
  const double first = std::ceil(range.low / step) * step;
  for (int i = 0; i < kMost; ++i) {
    const double tick = first + i * step;
    if (!(tick <= range.high + step * 1e-9)) break;
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

class Plot {
 public:
  explicit Plot(const std::vector<Curve>& curves) : curves_(curves) {
    for (const Curve& curve : curves) {
      for (size_t i = 0; i < curve.values.size(); ++i) {
        if (!std::isfinite(curve.values[i])) continue;
        x_.Add(curve.steps[i]);
        y_.Add(curve.values[i]);
      }
    }
    x_ = x_.Widened();
    y_ = y_.Widened();
  }

  std::string Draw() {
    absl::StrAppendFormat(&svg_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                          "font-family=\"sans-serif\" font-size=\"12\">\n"
                          "<rect width=\"%g\" height=\"%g\" fill=\"white\"/>\n",
                          kWidth, kHeight, kWidth, kHeight);
    DrawAxes();
    for (size_t i = 0; i < curves_.size(); ++i) DrawCurve(i);
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  double X(double step) const {
    return kLeft + (step - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }

  void DrawAxes() {
    for (const double tick : Ticks(y_)) {
      absl::StrAppendFormat(&svg_,
                            "<path d=\"M%g %.1fH%g\" stroke=\"#dddddd\"/>"
                            "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                            kLeft, Y(tick), kWidth - kRight, kLeft - 6, Y(tick) + 4, tick);
    }
    for (const double tick : Ticks(x_)) {
      absl::StrAppendFormat(&svg_, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%.6g</text>\n",
                            X(tick), kHeight - kBottom + 18, tick);
    }
    absl::StrAppendFormat(&svg_, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">step</text>\n",
                          (kLeft + kWidth - kRight) / 2, kHeight - 6);
  }

  void DrawCurve(size_t index) {
    const Curve& curve = curves_[index];
    const char* color = kColors[index % std::size(kColors)];
    std::string path;
    bool gap = true;
    for (size_t i = 0; i < curve.values.size(); ++i) {
      if (!std::isfinite(curve.values[i])) {
        gap = true;
        continue;
      }
      absl::StrAppendFormat(&path, "%c%.1f %.1f", gap ? 'M' : 'L', X(curve.steps[i]),
                            Y(curve.values[i]));
      gap = false;
    }
    absl::StrAppendFormat(&svg_,
                          "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
                          "stroke-linejoin=\"round\"/>\n",
                          path, color);
    absl::StrAppendFormat(&svg_, "<text x=\"%g\" y=\"20\" fill=\"%s\">%s</text>\n",
                          kLeft + static_cast<double>(index) * 170, color, XmlText(curve.name));
  }

  const std::vector<Curve>& curves_;
  Range x_;
  Range y_;
  std::string svg_;
};

}  // namespace

std::string PlotSvg(const std::vector<Curve>& curves) { return Plot(curves).Draw(); }

}  // namespace interp
