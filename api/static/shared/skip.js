// The link to the content. It leaves the address alone, in whose fragment pages keep their place.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector("main").focus();
});
