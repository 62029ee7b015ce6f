"use strict";

// Links cross each other, so that the nearest one is meant, whichever lies on top. It is marked and named before it is clicked.
let aimed = null;
const REACH = 10, TIP_WIDTH = 250;

function distance(place, [from, to]) {
  const along = { x: to.x - from.x, y: to.y - from.y };
  const share = ((place.x - from.x) * along.x + (place.y - from.y) * along.y) / (along.x ** 2 + along.y ** 2);
  const nearest = Math.min(1, Math.max(0, share));
  return Math.hypot(place.x - from.x - nearest * along.x, place.y - from.y - nearest * along.y);
}

function linkAt(event) {
  if (event.target.closest(".node")) return null;
  const place = new DOMPoint(event.clientX, event.clientY).matrixTransform($("tree").getScreenCTM().inverse());
  let nearest = null, least = REACH;
  links.forEach(({ node, ends }, index) => {
    const away = node.classList.contains("folded") ? REACH : distance(place, ends);
    if (away < least) [nearest, least] = [index, away];
  });
  return nearest;
}

function onClick(event) {
  // A click without a place is that of a screen reader, which has chosen its link.
  const index = event.detail ? linkAt(event) : links.findIndex(({ node }) => node.contains(event.target));
  if (index === null || index < 0) return;
  focusLink(index);
  toggle(index);
}

function aim(index, event) {
  aimed = index;
  $("aim").hidden = index === null;
  $("tree").classList.toggle("aimed", index !== null);
  $("tree").querySelector(".mark").setAttribute("d", index === null ? "" : links[index].hit.getAttribute("d"));
  if (index === null) return;
  const card = $("fabric").getBoundingClientRect(), x = event.clientX - card.x, [lower, upper] = links[index].ends;
  // Below the pointer, on that side of the link that it does not lean over.
  const isLeft = x > card.width - TIP_WIDTH || (x > TIP_WIDTH && lower.x > upper.x);
  Object.assign($("aim").style, { left: `${x}px`, top: `${event.clientY - card.y}px`, translate: isLeft ? "calc(-100% - 14px) 14px" : "14px 14px" });
  updateAim();
}

function updateAim() {
  if (aimed === null || !latest) return;
  const [isUp, up, down, queueUp, queueDown, lost, rate] = latest.links[aimed];
  const state = isUp ? `${rate < 1 ? `at ${percent(rate)} of its rate\n` : ""}load up ${percent(up)}, down ${percent(down)}\nqueue up ${packets(queueUp)}, down ${packets(queueDown)} packets` : `failed, ${lost} packets lost`;
  $("aim").replaceChildren(html("b", layout.links[aimed].name), `\n${state}\nclick: ${isUp ? "fail" : "mend"} it`);
}
