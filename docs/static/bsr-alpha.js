// A slider over α: how likely each return is under the exact optimum, drawn as discs in the plane of returns.
(() => {
  const data = JSON.parse(document.getElementById("bsr-alpha-data").textContent);
  const root = document.getElementById("bsr-alpha");
  const size = 320, margin = 42;
  root.innerHTML = `
    <div class="controls">
      <label>problem <select>${Object.entries(data)
        .map(([name, problem]) => `<option value="${name}">${problem.title}</option>`).join("")}</select></label>
      <label>α <input type="range" min="0" max="50" value="25" step="1" aria-describedby="bsr-alpha-words"></label>
      <output></output>
    </div>
    <svg viewBox="0 0 ${size} ${size}" role="img" aria-labelledby="bsr-alpha-words"></svg>
    <div id="bsr-alpha-words" aria-live="polite"></div>`;
  const [choice, slider] = [root.querySelector("select"), root.querySelector("input")];

  const line = (x1, y1, x2, y2) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="axis"/>`;
  const text = (x, y, words, anchor = "middle") => `<text x="${x}" y="${y}" text-anchor="${anchor}">${words}</text>`;

  function draw() {
    const problem = data[choice.value];
    const point = problem.points[slider.value];
    const most = Math.max(...problem.points.flatMap((one) => one.outcomes.flatMap((row) => row.slice(1))));
    const step = most > 5 ? 2 : 1;
    const at = (value) => margin + (value / (1.12 * most)) * (size - 1.5 * margin);
    const place = (returns) => [at(returns[0]), size - at(returns[1])];
    let drawn = line(margin, size - margin, size, size - margin) + line(margin, 0, margin, size - margin);
    for (let tick = 0; tick <= most; tick += step) {
      drawn += text(at(tick), size - margin + 16, tick) + text(margin - 8, size - at(tick) + 4, tick, "end");
    }
    drawn += text(size / 2 + margin / 2, size - 6, `return of ${problem.objectives[0]}`);
    drawn += `<g transform="rotate(-90 12 ${size / 2})">${text(12, size / 2, `return of ${problem.objectives[1]}`)}</g>`;
    for (const [chance, ...returns] of point.outcomes) {
      const [x, y] = place(returns);
      drawn += `<circle cx="${x}" cy="${y}" r="${24 * Math.sqrt(chance)}" class="outcome"/>`;
    }
    const [x, y] = place(point.mean);
    drawn += `<path d="M${x - 6} ${y}h12M${x} ${y - 6}v12" class="mean"/>`;
    root.querySelector("svg").innerHTML = drawn;
    const end = point.alpha === 0 ? " (ESR)" : point.alpha === 1 ? " (SER)" : "";
    root.querySelector("output").textContent = point.alpha.toFixed(2) + end;
    const rows = point.outcomes.map(([chance, ...returns]) =>
      `<tr><td>${(100 * chance).toFixed(1)} %</td><td>(${returns.join(", ")})</td></tr>`).join("");
    root.querySelector("#bsr-alpha-words").innerHTML = `
      <table><thead><tr><th>episodes</th><th>returns</th></tr></thead><tbody>${rows}</tbody></table>
      <p>Mean returns (${point.mean.map((value) => value.toFixed(2)).join(", ")}), the cross.
      Worth ${point.esr.toFixed(3)} under ESR, ${point.ser.toFixed(3)} under SER.</p>`;
  }
  choice.addEventListener("change", draw);
  slider.addEventListener("input", draw);
  draw();
})();
